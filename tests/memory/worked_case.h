// SPDX-License-Identifier: Apache-2.0
// Model specs by hand, for the worked cases of formula pages.
#pragma once

#include <string>

#include "model/model.h"
#include "tests/testing/worked_case.h"

namespace plimsoll::testing {

/// A plain Llama of these shapes, as read_spec would give it.
struct LlamaShape {
  int layers = 0, hidden = 0, q_heads = 0, kv_heads = 0, head_dim = 0, intermediate = 0;
  std::int64_t vocab = 0, context = 0;
};
model::ModelSpec llama(const LlamaShape& shape);
inline constexpr LlamaShape kLlama8B{32, 4096, 32, 8, 128, 14336, 128256, 131072};
inline constexpr LlamaShape kLlama70B{80, 8192, 64, 8, 128, 28672, 128256, 131072};

/// `bytes` in 10^9 with that many decimals, as documents print it.
std::string gb_text(double bytes, int decimals);

}  // namespace plimsoll::testing
