// SPDX-License-Identifier: Apache-2.0
// How Python spells values: str(), repr(), json.dumps(), printf-style % and str.format.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace plimsoll::text::jinja {

class Interpreter;
struct Arguments;

/// str(value); "" for an undefined.
std::string python_str(const Value& value);
std::string python_repr(const Value& value);
/// What ascii() makes of a repr(): other characters as \\x, \\u or \\U.
std::string as_ascii(std::string_view repr);
/// float.__repr__: shortest digits, exponent below 1e-4 and from 1e16 on.
std::string python_float(double value);

struct JsonFormat {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
/// json.dumps. Errors: nothing is returned and `bad_type` names the Python type that JSON lacks.
std::optional<std::string> python_json(const Value& value, const JsonFormat& format, std::string& bad_type);

/// left % right of a string. Errors: through the interpreter (TypeError, ValueError).
Value percent_format(Interpreter& run, const Value& pattern, const Value& values);
/// pattern.format(arguments): positions, names, and the spec's fill, align, sign, zero, width, precision,
/// type.
Value brace_format(Interpreter& run, const Value& pattern, const Arguments& arguments);

}  // namespace plimsoll::text::jinja
