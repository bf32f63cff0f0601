// SPDX-License-Identifier: Apache-2.0
// Filters that read and make numbers. Integers stay integers: none goes through a double.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "text/jinja/filters.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/number_text.h"
#include "text/jinja/python_format.h"

namespace plimsoll::text::jinja {
namespace {

constexpr double kTwoTo63 = 9223372036854775808.0;
constexpr std::int64_t kMaxPrecision = 300;

// int(number) of a finite one.
Value whole_part(Interpreter& run, double number) {
  if (number >= -kTwoTo63 && number < kTwoTo63) return static_cast<std::int64_t>(number);
  return run.fail("LimitError", "integer is too large");
}

Value refuse_infinite(Interpreter& run, double number) {
  return std::isnan(number) ? run.fail("ValueError", "cannot convert float NaN to integer")
                            : run.fail("OverflowError", "cannot convert float infinity to integer");
}

Value to_int(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* given_default = given.get(0, "default");
  const Value otherwise = given_default ? *given_default : Value(0);
  std::int64_t base = 10;
  if (const Value* radix = given.get(1, "base"); radix && !radix->as_int(base)) base = -1;
  if (run.refuse_undefined(value)) return {};
  std::int64_t whole = 0;
  if (value.as_int(whole)) return whole;
  double number = 0;
  if (const std::string* text = value.string()) {
    const WholeText read = whole_of_text(*text, base);
    if (read.is_valid) return read.fits ? Value(read.value) : run.fail("LimitError", "integer is too large");
    const auto fraction = float_of_text(*text);
    return fraction && std::isfinite(*fraction) ? whole_part(run, *fraction) : otherwise;
  }
  if (!value.as_double(number) || std::isnan(number)) return otherwise;
  return std::isinf(number) ? refuse_infinite(run, number) : whole_part(run, number);
}

Value to_float(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* otherwise = given.get(0, "default");
  if (run.refuse_undefined(value)) return {};
  double number = 0;
  if (value.as_double(number)) return number;
  if (const std::string* text = value.string())
    if (const auto read = float_of_text(*text)) return *read;
  return otherwise ? *otherwise : Value(0.0);
}

Value absolute(Interpreter& run, const Value& value, const Arguments&) {
  std::int64_t whole = 0;
  double number = 0;
  if (value.as_int(whole))
    return whole == INT64_MIN ? run.fail("LimitError", "integer is too large") : Value(std::abs(whole));
  if (value.as_double(number)) return std::fabs(number);
  return run.type_error("bad operand type for abs(): '" + type_name(value) + "'");
}

// A multiple of 10^places next to the number, of two as near the even one.
Value rounded_whole(Interpreter& run, std::int64_t whole, std::int64_t places) {
  if (places > 19) return 0;  // no 64 bits reach half of 10^20
  __int128 unit = 1;
  for (std::int64_t i = 0; i < places; ++i) unit *= 10;
  const __int128 magnitude = whole < 0 ? -static_cast<__int128>(whole) : whole;
  const __int128 rest = magnitude % unit;
  const bool is_odd = magnitude / unit % 2 != 0;
  __int128 rounded = magnitude - rest;
  if (rest * 2 > unit || (rest * 2 == unit && is_odd)) rounded += unit;
  if (rounded > INT64_MAX) return run.fail("LimitError", "integer is too large");
  return static_cast<std::int64_t>(whole < 0 ? -rounded : rounded);
}

// The same of a float, by its exact decimal digits.
double rounded_float(double number, std::int64_t places) {
  const double whole = std::trunc(std::fabs(number));
  std::string digits = fmt::format("{:.0f}", whole);
  const auto dropped = static_cast<std::size_t>(places);
  if (digits.size() < dropped) return std::copysign(0.0, number);
  const std::string rest = digits.substr(digits.size() - dropped);
  digits = "0" + digits.substr(0, digits.size() - dropped);
  const bool is_exact = rest.find_first_not_of('0', 1) == std::string::npos && whole == std::fabs(number);
  const bool is_odd = (digits.back() - '0') % 2 != 0;
  if (rest[0] > '5' || (rest[0] == '5' && (!is_exact || is_odd))) {
    std::size_t at = digits.size() - 1;
    for (; digits[at] == '9'; --at) digits[at] = '0';
    ++digits[at];
  }
  digits.append(dropped, '0');
  return std::copysign(std::strtod(digits.c_str(), nullptr), number);
}

// func(number * 10**precision) / 10**precision, where Python's func makes an int.
Value rounded_towards(Interpreter& run, const Value& value, std::int64_t precision, bool is_up) {
  double number = 0;
  std::int64_t whole = 0;
  value.as_double(number);
  if (value.as_int(whole) && precision >= 0) return number;  // nothing to cut
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = number * scale;
  if (!std::isfinite(scaled)) return refuse_infinite(run, scaled);
  return (is_up ? std::ceil(scaled) : std::floor(scaled)) / scale + 0.0;  // an int has no negative zero
}

Value round_filter(Interpreter& run, const Value& value, const Arguments& given) {
  std::int64_t precision = 0;
  if (const Value* digits = given.get(0, "precision")) digits->as_int(precision);
  const Value* method = given.get(1, "method");
  const std::string how = method && method->string() ? *method->string() : "common";
  if (how != "common" && how != "ceil" && how != "floor")
    return run.fail("FilterArgumentError", "method must be common, ceil or floor");
  double number = 0;
  std::int64_t whole = 0;
  if (!value.as_double(number))
    return run.type_error("type " + type_name(value) + " doesn't define __round__ method");
  if (precision < -kMaxPrecision || precision > kMaxPrecision)
    return run.fail("LimitError", "precision is out of range");
  if (how != "common") return rounded_towards(run, value, precision, how == "ceil");
  if (value.as_int(whole)) return precision >= 0 ? Value(whole) : rounded_whole(run, whole, -precision);
  if (!std::isfinite(number)) return number;
  if (precision < 0) return rounded_float(number, -precision);
  // Decimal rounding of the exact binary value, as Python does.
  return std::strtod(fmt::format("{:.{}f}", number, precision).c_str(), nullptr);
}

Value file_size(Interpreter& run, const Value& value, const Arguments& given) {
  const Value* binary = given.get(0, "binary");
  const bool is_binary = binary && binary->is_true();
  if (run.refuse_undefined(value)) return {};
  double bytes = 0;
  if (const std::string* text = value.string()) {
    const auto read = float_of_text(*text);
    if (!read) return run.fail("ValueError", "could not convert string to float: " + run.to_repr(value));
    bytes = *read;
  } else if (!value.as_double(bytes)) {
    return run.type_error("float() argument must be a string or a real number, not '" + type_name(value) +
                          "'");
  }
  const double base = is_binary ? 1024 : 1000;
  if (bytes == 1) return Value("1 Byte");
  if (std::isinf(bytes) && bytes < 0) return refuse_infinite(run, bytes);
  // An int has no negative zero.
  if (bytes < base) return run.string(fmt::format("{:.0f} Bytes", std::trunc(bytes) + 0.0));
  static constexpr const char* kUnits[] = {"k", "M", "G", "T", "P", "E", "Z", "Y"};
  std::size_t at = 0;
  double unit = base * base;
  for (; at < 7 && !(bytes < unit); ++at) unit *= base;
  return run.string(fmt::format("{:.1f} {}{}", base * bytes / unit, at == 0 && is_binary ? "K" : kUnits[at],
                                is_binary ? "iB" : "B"));
}

constexpr std::array kNumberFilters = {
    FilterEntry{"abs", absolute, ""},
    FilterEntry{"filesizeformat", file_size, "binary"},
    FilterEntry{"float", to_float, "default"},
    FilterEntry{"int", to_int, "default,base"},
    FilterEntry{"round", round_filter, "precision,method"},
};

}  // namespace

const FilterEntry* number_filter(std::string_view name) {
  return entry_named(kNumberFilters, name);
}

}  // namespace plimsoll::text::jinja
