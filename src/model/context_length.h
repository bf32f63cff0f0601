// SPDX-License-Identifier: Apache-2.0
// How long may a sequence be where nobody says otherwise? The lengths that a config states, what its rotary
// scaling does to them, and the default that follows by vLLM's rule. One place for inspect, plan and the
// engine. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/model.h"

namespace plimsoll::model {

/// Context extensions above it are damage, not intent.
constexpr double kMaxRopeFactor = 1e6;

/// The value as a length in tokens; nothing when it cannot be meant (below 1, above kMaxContext, no integer).
std::optional<std::int64_t> length_in(const Json& value);

/// Keys that state a length, in the order in which vLLM asks for them.
std::span<const std::string_view> length_keys();

/// What a rotary dictionary says.
struct RopeScaling {
  std::string type = "default";
  std::optional<double> factor;
  std::optional<std::int64_t> original;

  bool is_yarn() const { return type == "yarn" || type == "deepseek_yarn"; }
};
/// rope_parameters, else rope_scaling; several where each kind of layer has its own.
std::vector<RopeScaling> rope_scalings(const Json& figures);

/// tokens x factor, at most kMaxContext.
std::int64_t scaled_length(std::int64_t tokens, double factor);

/// The length that vLLM takes from the config before scaling: the smallest of the keys, but model_max_length
/// goes before all. Nothing when no key states one.
std::optional<std::int64_t> stated_length(const Json& figures);

/// vLLM's default --max-model-len for a length that is stated. Kinds whose stated length is already the
/// extended one are not multiplied; longrope starts at its original length.
/// Source: docs/formulas/context.md, section 3 (vLLM 0.33.0).
std::int64_t default_length(const Json& figures, std::int64_t stated);

/// The same for a model whose spec is read: a factor reaches no further than the spec says (Gemma 3 states
/// the extended length beside its factor). Where no key states a length, and for GGUF, the spec's own counts.
/// 0: none is known.
std::int64_t default_length(const artifact::Artifact& artifact, const ModelSpec& spec);
/// The same from a bare config.json tree.
std::int64_t default_length(const Json& config, const ModelSpec& spec);

}  // namespace plimsoll::model
