// SPDX-License-Identifier: Apache-2.0
// At what angle does each pair of dimensions turn? Inverse frequencies of every rope kind, and the cosines
// and sines of a position. Values follow transformers' ROPE_INIT_FUNCTIONS in float32.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/model.h"

namespace plimsoll::engine {

struct RopeTable {
  std::vector<float> inverse_frequencies;  // [rotary_dim/2]
  float attention_factor = 1.0F;           // multiplies cosines and sines
};

/// The ropes of a model: layers with a window may turn by another, and under longrope requests that stay
/// within the original context by its short factors.
struct RopeTables {
  RopeTable all;
  std::optional<RopeTable> within;
  std::optional<RopeTable> windows;
};

/// `frequency_divisors`: [rotary_dim/2] factors that a GGUF file carries (llama3), or empty.
/// Errors: kUnsupported for dynamic scaling beyond the native context, whose angles depend on each sequence's
/// length.
Result<RopeTable> make_rope_table(const model::RopeSpec& rope, std::int64_t max_model_len,
                                  const std::vector<float>& frequency_divisors);

/// cosines, sines: [rotary_dim/2] of one position.
void rope_angles(const RopeTable& table, std::int64_t position, float* cosines, float* sines);

}  // namespace plimsoll::engine
