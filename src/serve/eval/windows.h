// SPDX-License-Identifier: Apache-2.0
// Which tokens of a text are predicted from which others? The two conventions in which perplexities are
// published. Pure. Source: docs/formulas/eval.md, section 1.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace plimsoll::serve {

enum class WindowRule {
  kStrided,   // every token once, behind at least ctx_size - stride others: Hugging Face's evaluation
  kLlamaCpp,  // windows side by side, of each its second half: llama-perplexity
};
std::string_view to_string(WindowRule rule);

/// Tokens [begin, end) are read, those of [first_scored, end) predicted.
struct Window {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t first_scored = 0;
  bool operator==(const Window&) const = default;
};

/// Windows over `num_tokens`; ctx_size is at least 2, stride from 1 to ctx_size (kStrided alone reads it).
/// Empty when the text is too short: fewer than 2 tokens, or for kLlamaCpp than 2 * ctx_size.
std::vector<Window> make_windows(WindowRule rule, std::int64_t num_tokens, std::int64_t ctx_size,
                                 std::int64_t stride);

}  // namespace plimsoll::serve
