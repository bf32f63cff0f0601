// SPDX-License-Identifier: Apache-2.0
// Python's methods of str (string_methods.cpp, string_questions.cpp) and the text functions behind them
// (text_functions.cpp).
#pragma once

#include <string_view>

#include "text/jinja/callable.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {

/// The method; without function when str has none of this name (or none that templates are known to use).
Method string_method(std::string_view name);

/// Of those that change nothing and only tell (string_questions.cpp).
Method string_question(std::string_view name);
/// A method's first argument as a string; null after a TypeError.
const std::string* one_string(Interpreter& run, const Arguments& given, const char* method,
                              const char* complaint = "must be str, not ");
/// Counts searching backwards, which may compare every byte of the part at every place.
bool charge_backwards(Interpreter& run, std::string_view text, std::string_view part);

/// str.strip, lstrip, rstrip of white space: as strip() of the room, quicker on ASCII.
std::string_view trimmed(std::string_view text, Side side);
/// Where `part` first occurs; linear in both, which std::string's find is not. npos when nowhere.
std::size_t find_text(std::string_view text, std::string_view part);
/// str.replace: every occurrence, or the first `count` when not negative; an empty `from` matches between
/// characters.
std::string replaced(std::string_view text, std::string_view from, std::string_view to, std::int64_t count);
/// str.splitlines().
std::vector<std::string> split_lines(std::string_view text, bool keeps_ends = false);

/// No text has more lines, cheaply found.
std::size_t most_lines(std::string_view text);
/// Steps that taking any of these characters off a text costs beside reading the text.
std::int64_t strip_cost(std::string_view characters);

/// & < > " ' as HTML writes them: what a plain text becomes inside one that `safe` marked.
std::string escaped_markup(std::string_view text);
/// str.swapcase().
std::string swap_case(std::string_view text);

}  // namespace plimsoll::text::jinja
