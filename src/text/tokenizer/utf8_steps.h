// SPDX-License-Identifier: Apache-2.0
// Steps from character to character through UTF-8 that is known to be valid (or is cut anywhere, without
// harm), faster than decoding it. Code points and repair: base/utf8.h. Plain functions over
// the caller's memory; safe from any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace plimsoll::text {

/// Bytes of the character that starts at `at`, which is inside `text`; never reaches past its end.
inline std::size_t character_bytes(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t bytes = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return std::min(bytes, text.size() - at);
}

/// `at` is the end of `text` or the start of a character.
inline bool is_boundary(std::string_view text, std::size_t at) {
  return at >= text.size() || (static_cast<unsigned char>(text[at]) & 0xC0u) != 0x80u;
}

}  // namespace plimsoll::text
