// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/format_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "text/jinja/python_format.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {

int read_number(std::string_view text, std::size_t& at) {
  int number = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    number = std::min(number * 10 + (text[at] - '0'), kMaxFieldWidth + 1);
  return number;
}

bool parse_field_spec(std::string_view text, bool is_number, FieldSpec& spec) {
  const std::u32string wide = to_code_points(text);
  std::size_t at = 0;
  bool has_fill = false;
  const auto is_align = [](char32_t c) { return c == U'<' || c == U'>' || c == U'^' || c == U'='; };
  if (wide.size() > 1 && is_align(wide[1])) {
    has_fill = true;
    spec.fill = to_utf8(wide.substr(0, 1));
    spec.align = static_cast<char>(wide[1]);
    at = spec.fill.size() + 1;
  } else if (!wide.empty() && is_align(wide[0])) {
    spec.align = text[at++];
  }
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  if (at < text.size() && text[at] == '#') spec.is_alternate = true, ++at;
  if (at < text.size() && text[at] == '0') {
    // Only a fill that was written keeps the zero from being it.
    if (!has_fill) spec.fill = "0";
    if (spec.align == '\0' && is_number) spec.align = '=';
    ++at;
  }
  spec.width = read_number(text, at);
  if (at < text.size() && text[at] == ',') spec.has_commas = true, ++at;
  if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at);
  if (at < text.size()) spec.type = text[at++];
  return at == text.size() && spec.width <= kMaxFieldWidth && spec.precision <= kMaxFieldWidth;
}

namespace {

std::string repeated(const std::string& fill, std::size_t count) {
  if (fill.size() == 1) return std::string(count, fill[0]);
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fill;
  return out;
}

}  // namespace

std::string padded(const FieldSpec& spec, const std::string& sign, const std::string& body,
                   char default_align) {
  const char align = spec.align ? spec.align : default_align;
  const std::size_t used = num_code_points(sign) + num_code_points(body);
  const std::size_t missing =
      static_cast<std::size_t>(spec.width) > used ? static_cast<std::size_t>(spec.width) - used : 0;
  const std::size_t before = align == '>' || align == '=' ? missing : align == '^' ? missing / 2 : 0;
  const std::string left = repeated(spec.fill, before), right = repeated(spec.fill, missing - before);
  return align == '=' ? sign + left + body : left + sign + body + right;
}

namespace {

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

}  // namespace

std::optional<std::string> formatted_number(const Value& value, const FieldSpec& spec) {
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

}  // namespace plimsoll::text::jinja
