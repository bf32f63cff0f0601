// SPDX-License-Identifier: Apache-2.0
// "{:>8}".format(x): the parts of Python's format language that templates use.
#include <algorithm>

#include "text/jinja/format_spec.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

Value formatted(Interpreter& run, const Value& value, std::string_view spec_text) {
  if (spec_text.empty()) return Value(run.to_text(value));
  FieldSpec spec;
  if (!parse_field_spec(spec_text, value.is_number(), spec))
    return run.fail("ValueError", "Invalid format specifier");
  if (value.is_number()) {
    if (auto text = formatted_number(value, spec)) return Value(std::move(*text));
  } else if (value.is_string()) {
    if (spec.align == '=')
      return run.fail("ValueError", "'=' alignment not allowed in string format specifier");
    if (spec.type == '\0' || spec.type == 's') {
      std::u32string text = to_code_points(run.to_text(value));
      if (spec.precision >= 0) text = text.substr(0, static_cast<std::size_t>(spec.precision));
      return Value(padded(spec, "", to_utf8(text), '<'));
    }
  } else {
    return run.type_error("unsupported format string passed to " + type_name(value) + ".__format__");
  }
  return run.fail("ValueError", std::string("Unknown format code '") + spec.type + "' for object of type '" +
                                    type_name(value) + "'");
}

// The argument that "name", "3" or "" names; null after an error.
const Value* named_argument(Interpreter& run, std::string_view name, const Arguments& arguments,
                            std::size_t& next) {
  if (name.find_first_not_of("0123456789") == std::string_view::npos) {
    std::size_t at = 0;
    const std::size_t position = name.empty() ? next++ : static_cast<std::size_t>(read_number(name, at));
    if (position < arguments.positional.size()) return &arguments.positional[position];
    run.fail("IndexError",
             "Replacement index " + std::to_string(position) + " out of range for positional args tuple");
    return nullptr;
  }
  if (!run.charge_names(arguments.named.size(), name.size())) return nullptr;
  const Value* found = arguments.find(name);
  if (!found) run.fail("KeyError", "'" + std::string(name) + "'");
  return found;
}

// The value at ".attr[key]..." of another.
Value at_path(Interpreter& run, Value value, std::string_view path) {
  while (!path.empty() && !run.failed()) {
    if (path[0] == '.') {
      const std::string_view part = path.substr(1, path.find_first_of(".[", 1) - 1);
      value = run.attribute(value, Value(std::string(part)));
      path.remove_prefix(part.size() + 1);
      continue;
    }
    const std::size_t close = path.find(']');
    if (close == std::string_view::npos) return run.fail("ValueError", "expected '}' before end of string");
    const std::string_view key = path.substr(1, close - 1);
    std::size_t at = 0;
    const bool is_index = key.find_first_not_of("0123456789") == std::string_view::npos && !key.empty();
    value = run.item(value, is_index ? Value(read_number(key, at)) : Value(std::string(key)));
    path.remove_prefix(close + 1);
  }
  return value;
}

// One "{name.attr[key]!r:spec}" without its braces; plain values are escaped in a markup.
std::string brace_field(Interpreter& run, std::string_view field, const Arguments& arguments,
                        std::size_t& next, bool escapes) {
  std::string_view spec, name = field;
  if (const auto colon = name.find(':'); colon != std::string_view::npos) {
    spec = name.substr(colon + 1);
    name = name.substr(0, colon);
  }
  char conversion = '\0';
  if (name.size() >= 2 && name[name.size() - 2] == '!') {
    conversion = name.back();
    name.remove_suffix(2);
  }
  const std::string_view head = name.substr(0, name.find_first_of(".["));
  const Value* found = named_argument(run, head, arguments, next);
  if (!found) return "";
  Value value = at_path(run, *found, name.substr(head.size()));
  if (run.failed()) return "";
  if (conversion == 'r') value = Value(run.to_repr(value));
  if (conversion == 'a') value = Value(as_ascii(run.to_repr(value)));
  if (conversion == 's') value = Value(run.to_text(value));
  if (escapes && value.is_markup()) {
    if (!spec.empty()) run.fail("ValueError", "Unsupported format specification for Markup.");
    return *value.string();
  }
  const std::string text = run.to_text(formatted(run, value, spec));
  return escapes ? escaped_markup(text) : text;
}

}  // namespace

Value brace_format(Interpreter& run, const Value& pattern, const Arguments& arguments) {
  const std::string& text = *pattern.string();
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < text.size() && !run.failed(); ++i) {
    const bool is_doubled = i + 1 < text.size() && text[i + 1] == text[i];
    if ((text[i] == '{' || text[i] == '}') && is_doubled) {
      out += text[i++];
    } else if (text[i] == '}') {
      return run.fail("ValueError", "Single '}' encountered in format string");
    } else if (text[i] == '{') {
      const std::size_t close = text.find('}', i);
      if (close == std::string::npos)
        return run.fail("ValueError", "Single '{' encountered in format string");
      out += brace_field(run, std::string_view(text).substr(i + 1, close - i - 1), arguments, next,
                         pattern.is_markup());
      if (!run.charge_steps(1) || !run.allows_length(out.size())) return {};
      i = close;
    } else {
      out += text[i];
    }
  }
  return run.string(std::move(out), pattern.is_markup());
}

}  // namespace plimsoll::text::jinja
