// SPDX-License-Identifier: Apache-2.0
#include "serve/eval/windows.h"

#include <algorithm>

namespace plimsoll::serve {

std::string_view to_string(WindowRule rule) {
  switch (rule) {
    case WindowRule::kStrided:
      return "strided";
    case WindowRule::kLlamaCpp:
      return "llama.cpp";
  }
  return "";
}

std::vector<Window> make_windows(WindowRule rule, std::int64_t num_tokens, std::int64_t ctx_size,
                                 std::int64_t stride) {
  std::vector<Window> windows;
  if (rule == WindowRule::kLlamaCpp) {
    if (num_tokens < 2 * ctx_size) return windows;
    for (std::int64_t begin = 0; begin + ctx_size <= num_tokens; begin += ctx_size)
      windows.push_back({begin, begin + ctx_size, begin + ctx_size / 2 + 1});
    return windows;
  }
  if (num_tokens < 2) return windows;
  std::int64_t scored = 0;  // tokens before it are done
  for (std::int64_t begin = 0; scored < num_tokens; begin += stride) {
    const std::int64_t end = std::min(begin + ctx_size, num_tokens);
    // Nothing predicts the first token of a window.
    const std::int64_t first = std::max(scored, begin + 1);
    if (first < end) windows.push_back({begin, end, first});
    scored = end;
  }
  return windows;
}

}  // namespace plimsoll::serve
