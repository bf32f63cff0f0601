// SPDX-License-Identifier: Apache-2.0
// Python's view of text: code points, white space, case. Strings are UTF-8 outside and code points inside.
// The reference tokenizers' view is unicode_sets.h's. Plain functions; results own their memory, but for
// strip's, which views its argument. Safe from any thread.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::text {

std::u32string to_code_points(std::string_view utf8);
std::string to_utf8(std::u32string_view code_points);
bool is_ascii(std::string_view text);
std::size_t num_code_points(std::string_view utf8);

/// str.isspace of one character, which is also what strip() and \s take.
bool is_python_space(char32_t c);
bool is_alphabetic(char32_t c);
bool is_decimal(char32_t c);
/// What such a digit counts.
int decimal_value(char32_t c);
/// str.isdigit of one character: superscripts and circled digits too.
bool is_digit(char32_t c);
/// str.isnumeric of one character, but for ideographs that are numbers.
bool is_numeric(char32_t c);
/// \w of a regular expression: letters, marks, digits, connectors.
bool is_word_character(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
/// repr() prints it as it is.
bool is_printable(char32_t c);

std::string to_upper(std::string_view utf8);
std::string to_lower(std::string_view utf8);
/// str.casefold().
std::string fold_case(std::string_view utf8);
/// str.title(): a capital after every character that is no letter.
std::string to_title(std::string_view utf8);
std::string capitalize(std::string_view utf8);

enum class Side { kLeft, kRight, kBoth };
/// str.strip/lstrip/rstrip; white space when `characters` is null.
std::string_view strip(std::string_view text, Side side, const std::string* characters = nullptr);

}  // namespace plimsoll::text
