// SPDX-License-Identifier: Apache-2.0
// What of a model card is text for readers, and which numbers stand in it? Knows nothing of what they count.
// Pure; views point into the text given.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace plimsoll::inspect {

inline constexpr std::size_t kReach = 60;  // characters around a number that say what it counts

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return lower(c) >= 'a' && lower(c) <= 'z';
}

/// Emphasis and table bars become blanks, so that "| **Total** | 1T |" reads as words; the length stays.
std::string plain(std::string_view text);

/// Fenced code and comments become blanks: commands and notes are no claims. The length stays.
std::string shown(std::string_view source);

struct Number {
  std::size_t begin = 0, end = 0;  // end: behind the unit
  double value = 0;
  double last_digit = 1;  // place value of the last digit, before the unit
  double unit = 1;
  std::string unit_text;  // "b", "billion", "k", or empty
};

/// Reads "1,234.5 billion" at `at`, where a digit stands. The text is plain().
Number read_number(std::string_view text, std::size_t at);

/// Whether a size ends a range: "0.6B to 235B", "from 0.6 to 235 billion" and the like.
bool ends_range(std::string_view text, std::size_t at);

/// Whether a size begins one.
bool begins_range(std::string_view text, std::size_t end);

/// The end of a list such as ", 360M, and 1.7B" behind its first size; `at` where there is none.
std::size_t list_end(std::string_view text, std::size_t at);

}  // namespace plimsoll::inspect
