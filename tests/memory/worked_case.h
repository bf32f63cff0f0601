// SPDX-License-Identifier: Apache-2.0
// The worked case of a formula page as numbers, so that page and code cannot drift apart; and model specs by
// hand.
#pragma once

#include <map>
#include <string>

#include "model/model.h"

namespace plimsoll::testing {

/// The rows `| quantity | value |` below "## Worked case" of docs/formulas/`page`, commas taken out.
class WorkedCase {
 public:
  explicit WorkedCase(const std::string& page);
  /// Each fails the test when the page has no such row.
  std::int64_t integer(const std::string& quantity) const;
  std::string text(const std::string& quantity) const;

 private:
  std::map<std::string, std::string> rows_;
};

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
