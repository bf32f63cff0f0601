// SPDX-License-Identifier: Apache-2.0
// What part of the model is a stored tensor, by the names that published models use? Asked once per kind of
// tensor. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "model/model.h"
#include "model/tensor_kinds.h"

namespace plimsoll::inspect {

/// By names alone, safetensors' and GGUF's.
model::WeightGroup group_of(std::string_view name);

/// Stored, but no parameter of the model, by names alone: tables that are computed anew, masks, corrections
/// of routers that are no trained weights, positions.
bool is_buffer(const model::TensorKind& kind);
bool is_buffer(std::string_view name, std::span<const std::int64_t> shape);

/// The same with a spec, whose names are those of files, or nearly; names alone decide where it lacks one.
class Parts {
 public:
  /// `kinds` are all that the files hold: some names mean what stands beside them.
  Parts(const std::optional<model::ModelSpec>& spec, std::span<const model::TensorKind> kinds);
  model::WeightGroup group_of(const model::TensorKind& kind, const std::string& module) const;
  bool is_buffer(const model::TensorKind& kind) const;
  /// True for names that the spec has; a tied head is not among them.
  bool lists(const model::TensorKind& kind) const;

 private:
  struct Known {
    model::WeightGroup group;
    bool is_parameter;
  };
  const Known* find_exactly(const std::string& name) const;
  const Known* find(const std::string& name) const;
  bool is_correction_of_router(std::string_view name) const;
  std::unordered_map<std::string, Known> known_;   // by pattern
  std::unordered_set<std::string> above_experts_;  // "layers.*.ffn.": patterns of what has experts
};

/// How many of the kind's tensors belong to layers that predict further tokens (MTP): those under such a
/// name, and the layers from `num_layers` on where the config says that some follow.
std::int64_t count_mtp(const model::TensorKind& kind, std::int64_t num_layers, bool has_more_layers);

}  // namespace plimsoll::inspect
