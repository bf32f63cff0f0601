// SPDX-License-Identifier: Apache-2.0
// How does a config say its rotary embedding? Reads transformers' rope_scaling (4.x), rope_parameters (5.x)
// and GGUF's rope.* keys into a RopeSpec, and tells which context lengths follow. Pure.
#pragma once

#include <string_view>

#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

/// True for the names of rotary kinds that are read here.
bool is_known_rope_kind(std::string_view text);

/// Reads the rope of a config and sets the spec's context lengths. `share` of `head_dim` rotates by default.
/// Errors (kept in `keys`): kUnsupported for an unknown kind, kMalformed for a missing or absurd figure.
/// Source: docs/formats/config.md; transformers' ROPE_INIT_FUNCTIONS and RotaryEmbeddingConfigMixin.
void read_config_rope(KeyReader& keys, int head_dim, double share, double default_theta,
                      std::int64_t default_context, ModelSpec& spec);

/// The same from GGUF keys (rope.freq_base, rope.scaling.*, context_length).
void read_gguf_rope(KeyReader& keys, int head_dim, ModelSpec& spec);

}  // namespace plimsoll::model
