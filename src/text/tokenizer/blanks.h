// SPDX-License-Identifier: Apache-2.0
// White space at the ends of a text, as the reference sees it. Plain functions; safe from any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/utf8.h"
#include "text/tokenizer/reference_unicode.h"

namespace plimsoll::text {

/// Bytes of blanks that `utf8` begins with.
inline std::size_t blanks_at_start(std::string_view utf8) {
  std::size_t at = 0;
  while (at < utf8.size()) {
    const DecodedChar next = decode_utf8(utf8.substr(at));
    if (!is_rust_space(next.code_point)) break;
    at += static_cast<std::size_t>(next.bytes);
  }
  return at;
}

/// Bytes of blanks that `utf8` ends with.
inline std::size_t blanks_at_end(std::string_view utf8) {
  std::size_t end = utf8.size();
  while (end > 0) {
    std::size_t start = end - 1;
    while (start > 0 && (static_cast<unsigned char>(utf8[start]) & 0xC0u) == 0x80u) --start;
    if (!is_rust_space(decode_utf8(utf8.substr(start)).code_point)) break;
    end = start;
  }
  return utf8.size() - end;
}

}  // namespace plimsoll::text
