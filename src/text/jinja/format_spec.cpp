// SPDX-License-Identifier: Apache-2.0
// "%05.2f" % x and "{:>8}".format(x): the parts of Python's two formatting languages that templates use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/interpreter.h"
#include "text/jinja/python_format.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {
namespace {

constexpr int kMaxWidth = 10'000;  // of one field: wider is an attack, not a layout

struct Spec {
  std::string fill = " ";
  char align = '\0';  // < > ^ =
  char sign = '-';    // - + space
  bool is_alternate = false;
  bool has_commas = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

int read_number(std::string_view text, std::size_t& at) {
  int number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    number = std::min(number * 10 + (text[at] - '0'), kMaxWidth + 1);
  return number;
}

bool parse_spec(std::string_view text, Spec& spec) {
  const std::u32string wide = to_code_points(text);
  std::size_t at = 0;
  const auto is_align = [](char32_t c) { return c == U'<' || c == U'>' || c == U'^' || c == U'='; };
  if (wide.size() > 1 && is_align(wide[1])) {
    spec.fill = to_utf8(wide.substr(0, 1));
    spec.align = static_cast<char>(wide[1]);
    at = spec.fill.size() + 1;
  } else if (!wide.empty() && is_align(wide[0])) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') spec.is_alternate = true, ++at;
  if (at < text.size() && text[at] == '0') {
    if (spec.align == '\0') spec.fill = "0", spec.align = '=';
    ++at;
  }
  spec.width = read_number(text, at);
  if (at < text.size() && text[at] == ',') spec.has_commas = true, ++at;
  if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at);
  if (at < text.size()) spec.type = text[at++];
  return at == text.size() && spec.width <= kMaxWidth && spec.precision <= kMaxWidth;
}

std::string padded(const Spec& spec, const std::string& sign, const std::string& body, char default_align) {
  const char align = spec.align ? spec.align : default_align;
  const std::size_t used = num_code_points(sign) + num_code_points(body);
  const std::size_t missing =
      static_cast<std::size_t>(spec.width) > used ? static_cast<std::size_t>(spec.width) - used : 0;
  const std::size_t before = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  std::string left, right;
  for (std::size_t i = 0; i < before; ++i) left += spec.fill;
  for (std::size_t i = before; i < missing; ++i) right += spec.fill;
  return align == '=' ? sign + left + body : left + sign + body + right;
}

std::string with_commas(const std::string& digits) {
  const std::size_t whole = std::min(digits.find('.'), digits.size());
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && i < whole && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string float_digits(double value, char type, int precision) {
  const bool is_percent = type == '%';
  if (precision < 0) precision = 6;
  const char c_format[] = {'%', '.', '*', is_percent || type == '\0' ? 'f' : type, '\0'};
  std::vector<char> buffer(static_cast<std::size_t>(precision) + 400);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  std::snprintf(buffer.data(), buffer.size(), c_format, precision,
                std::fabs(is_percent ? value * 100 : value));
#pragma GCC diagnostic pop
  return std::string(buffer.data()) + (is_percent ? "%" : "");
}

// format(value, spec) for numbers; nothing when the type letter does not fit.
std::optional<std::string> formatted_number(const Value& value, const Spec& spec) {
  std::int64_t whole = 0;
  double number = 0;
  value.as_double(number);
  const bool is_negative = number < 0 || (value.is_float() && std::signbit(number));
  const std::string sign = is_negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  std::string body;
  constexpr std::string_view kFloatTypes = "eEfFgG%";
  if (kFloatTypes.find(spec.type) != std::string_view::npos && spec.type != '\0') {
    body = float_digits(number, spec.type, spec.precision);
  } else if (value.as_int(whole)) {
    const std::uint64_t magnitude =
        whole < 0 ? 0 - static_cast<std::uint64_t>(whole) : static_cast<std::uint64_t>(whole);
    if (spec.type == 'x')
      body = (spec.is_alternate ? "0x" : "") + fmt::format("{:x}", magnitude);
    else if (spec.type == 'X')
      body = (spec.is_alternate ? "0X" : "") + fmt::format("{:X}", magnitude);
    else if (spec.type == 'o')
      body = (spec.is_alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    else if (spec.type == 'b')
      body = (spec.is_alternate ? "0b" : "") + fmt::format("{:b}", magnitude);
    else if (spec.type == 'd' || spec.type == '\0' || spec.type == 'n')
      body = std::to_string(magnitude);
    else
      return std::nullopt;
  } else if (spec.type == '\0') {
    body = spec.precision >= 0 ? float_digits(number, 'g', spec.precision) : python_float(std::fabs(number));
  } else {
    return std::nullopt;
  }
  if (spec.has_commas) body = with_commas(body);
  return padded(spec, sign, body, '>');
}

Value formatted(Interpreter& run, const Value& value, std::string_view spec_text) {
  if (spec_text.empty()) return Value(run.to_text(value));
  Spec spec;
  if (!parse_spec(spec_text, spec)) return run.fail("ValueError", "Invalid format specifier");
  if (value.is_number()) {
    if (auto text = formatted_number(value, spec)) return Value(std::move(*text));
  } else if (value.is_string() || value.is_bool()) {
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

// One "{name.attr[key]!r:spec}" without its braces.
std::string brace_field(Interpreter& run, std::string_view field, const Arguments& arguments,
                        std::size_t& next) {
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
  std::string_view rest = name.substr(head.size());
  const Value* found = nullptr;
  if (head.find_first_not_of("0123456789") == std::string_view::npos) {
    std::size_t at = 0;
    const std::size_t position = head.empty() ? next++ : static_cast<std::size_t>(read_number(head, at));
    if (position < arguments.positional.size()) found = &arguments.positional[position];
    if (!found)
      return run.fail("IndexError", "Replacement index " + std::to_string(position) +
                                        " out of range for positional args tuple"),
             "";
  } else {
    if (!run.charge_names(arguments.named.size(), head.size())) return {};
    for (const auto& [key, value] : arguments.named)
      if (key == head) found = &value;
    if (!found) return run.fail("KeyError", "'" + std::string(head) + "'"), "";
  }
  Value value = *found;
  while (!rest.empty() && !run.failed()) {
    if (rest[0] == '.') {
      const std::string_view part = rest.substr(1, rest.find_first_of(".[", 1) - 1);
      value = run.attribute(value, Value(std::string(part)));
      rest.remove_prefix(part.size() + 1);
      continue;
    }
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos)
      return run.fail("ValueError", "expected '}' before end of string"), "";
    const std::string_view key = rest.substr(1, close - 1);
    std::size_t at = 0;
    const bool is_index = key.find_first_not_of("0123456789") == std::string_view::npos && !key.empty();
    value = run.item(value, is_index ? Value(read_number(key, at)) : Value(std::string(key)));
    rest.remove_prefix(close + 1);
  }
  if (conversion == 'r') value = Value(run.to_repr(value));
  if (conversion == 's') value = Value(run.to_text(value));
  return run.to_text(formatted(run, value, spec));
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
      out += brace_field(run, std::string_view(text).substr(i + 1, close - i - 1), arguments, next);
      if (!run.charge_steps(1) || !run.allows_length(out.size())) return {};
      i = close;
    } else {
      out += text[i];
    }
  }
  return run.string(std::move(out), pattern.is_markup());
}

Value percent_format(Interpreter& run, const Value& pattern, const Value& values) {
  const std::string& text = *pattern.string();
  std::vector<Value> given = {values};
  if (const Sequence* tuple = values.sequence(SequenceForm::kTuple))
    given.assign(tuple->items.begin(), tuple->items.end());
  std::string out;
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size() && !run.failed(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (!run.allows_length(out.size())) return {};
    if (++i >= text.size()) return run.fail("ValueError", "incomplete format");
    if (text[i] == '%') {
      out += '%';
      continue;
    }
    Value value;
    const bool is_named = text[i] == '(';
    if (is_named) {
      const std::size_t close = text.find(')', i);
      if (close == std::string::npos) return run.fail("ValueError", "incomplete format key");
      const std::string key = text.substr(i + 1, close - i - 1);
      const Dict* dict = values.dict();
      if (!dict) return run.type_error("format requires a mapping");
      if (!dict->find_text((key))) return run.fail("KeyError", "'" + key + "'");
      value = *dict->find_text((key));
      i = close + 1;
    }
    Spec spec;
    for (; i < text.size() && std::string_view("-+ 0#").find(text[i]) != std::string_view::npos; ++i) {
      if (text[i] == '-') spec.align = '<', spec.fill = " ";
      if (text[i] == '0' && spec.align == '\0') spec.align = '=', spec.fill = "0";
      if (text[i] == '+' || text[i] == ' ') spec.sign = text[i];
      if (text[i] == '#') spec.is_alternate = true;
    }
    spec.width = read_number(text, i);
    if (i < text.size() && text[i] == '.') spec.precision = read_number(text, ++i);
    if (i >= text.size()) return run.fail("ValueError", "incomplete format");
    if (spec.width > kMaxWidth || spec.precision > kMaxWidth)
      return run.fail("LimitError", "format field is too wide");
    if (!is_named) {
      if (used >= given.size()) return run.type_error("not enough arguments for format string");
      value = given[used++];
    }
    spec.type = text[i];
    if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') {
      std::u32string body = to_code_points(spec.type == 's' ? run.to_text(value) : python_repr(value));
      if (spec.precision >= 0) body = body.substr(0, static_cast<std::size_t>(spec.precision));
      out += padded(spec, "", to_utf8(body), '>');
    } else if (std::string_view("diuxXoeEfFgG").find(spec.type) == std::string_view::npos) {
      return run.fail("ValueError", std::string("unsupported format character '") + spec.type + "'");
    } else if (run.refuse_undefined(value)) {
      return {};
    } else if (!value.is_number()) {
      return run.type_error(std::string("%") + spec.type + " format: a real number is required, not " +
                            type_name(value));
    } else {
      double number = 0;
      value.as_double(number);
      if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
      if (spec.type == 'd' && value.is_float()) {
        if (!(std::fabs(number) < 9e18)) return run.fail("OverflowError", "cannot convert float to integer");
        value = static_cast<std::int64_t>(number);
      }
      const auto body = formatted_number(value, spec);
      if (!body)
        return run.type_error(std::string("%") + spec.type + " format: an integer is required, not float");
      out += *body;
    }
  }
  if (used < given.size() && !values.dict() && !values.is_undefined() &&
      !(values.sequence(SequenceForm::kList) && used == 0))
    return run.type_error("not all arguments converted during string formatting");
  return run.string(std::move(out), pattern.is_markup());
}

}  // namespace plimsoll::text::jinja
