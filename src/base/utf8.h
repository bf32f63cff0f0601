// SPDX-License-Identifier: Apache-2.0
// UTF-8 as bytes and code points: validity, repair, one-step decoding and encoding. No Unicode properties
// (see text). Plain functions over the caller's memory; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace plimsoll {

constexpr char32_t kReplacementCharacter = 0xFFFD;

/// True when `text` is well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_valid_utf8(std::string_view text);

/// Each maximal ill-formed part becomes one U+FFFD, as Python's errors="replace" and WHATWG do.
std::string replace_invalid_utf8(std::string_view text);

struct DecodedChar {
  char32_t code_point = 0;  // kReplacementCharacter when ill-formed
  int bytes = 0;            // bytes consumed; >= 1 unless the text is empty
  bool valid = false;
  bool truncated = false;  // ill-formed only because the text ends inside a sequence
};
/// The first character of `text`.
DecodedChar decode_utf8(std::string_view text);

void append_utf8(std::string& out, char32_t code_point);

}  // namespace plimsoll
