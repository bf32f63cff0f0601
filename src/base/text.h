// SPDX-License-Identifier: Apache-2.0
// Questions about text that is ASCII by its format (names, digests, header fields), answered without a
// locale. Other scripts are for text/unicode.h. Values only; any thread.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll {

/// A to Z in lower case; every other byte as it is.
constexpr char lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string lower_ascii(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower_ascii(c);
  return result;
}

/// True for exactly `digits` hex digits in lower case: how digests and commits are written.
constexpr bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace plimsoll
