// SPDX-License-Identifier: Apache-2.0
#include "verify/line_cursor.h"

#include <charconv>
#include <cmath>

namespace plimsoll::verify {
namespace {

constexpr double kLargest = 4.0e18;  // below 2^62, so that differences fit as well
constexpr std::size_t kLongestNumber = 40;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

bool LineCursor::skip_past(std::string_view words) {
  const std::size_t at = rest_.find(words);
  if (at == std::string_view::npos) return false;
  rest_.remove_prefix(at + words.size());
  return true;
}

void LineCursor::skip_if(char c) {
  while (rest_.starts_with(c)) rest_.remove_prefix(1);
}

std::optional<Printed> LineCursor::integer() {
  std::string digits;
  std::size_t length = 0;
  for (; length < rest_.size() && length < kLongestNumber; ++length) {
    const char c = rest_[length];
    if (is_digit(c))
      digits += c;
    else if (c != ',' || length + 1 >= rest_.size() || !is_digit(rest_[length + 1]))
      break;
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc{} || static_cast<double>(value) > kLargest) return std::nullopt;
  Printed printed{value, 0, std::string(rest_.substr(0, length))};
  rest_.remove_prefix(length);
  return printed;
}

std::optional<std::pair<double, double>> LineCursor::decimal(std::string* text) {
  const bool is_negative = rest_.starts_with('-');
  const std::size_t first = is_negative ? 1 : 0;
  std::size_t length = first, decimals = 0;
  bool has_point = false;
  for (; length < rest_.size() && length < kLongestNumber; ++length) {
    const char c = rest_[length];
    // A full stop that ends a sentence is no decimal point.
    if (c == '.' && !has_point && length > first && length + 1 < rest_.size() && is_digit(rest_[length + 1]))
      has_point = true;
    else if (is_digit(c))
      decimals += has_point ? 1 : 0;
    else
      break;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(rest_.data() + first, rest_.data() + length, value);
  if (length == first || error != std::errc{} || !(value <= kLargest)) return std::nullopt;
  if (text) *text = std::string(rest_.substr(0, length));
  rest_.remove_prefix(length);
  return std::pair(is_negative ? -value : value, 0.5 * std::pow(10.0, -static_cast<double>(decimals)));
}

std::optional<Printed> LineCursor::gibibytes(bool needs_unit) {
  const std::string_view before = rest_;
  std::string text;
  const auto number = decimal(&text);
  if (!number) return std::nullopt;
  std::string_view unit;
  for (const std::string_view known : {" GiB", " GB", "GiB", "GB"})
    if (unit.empty() && rest_.starts_with(known)) unit = known;
  const double bytes = number->first * static_cast<double>(kGiB);
  if ((unit.empty() && needs_unit) || std::abs(bytes) > kLargest) {
    rest_ = before;
    return std::nullopt;
  }
  // A value that lies on the edge of what rounds to the print is one more byte away at most.
  const auto half = static_cast<std::int64_t>(number->second * static_cast<double>(kGiB)) + 1;
  rest_.remove_prefix(unit.size());
  return Printed{std::llround(bytes), half, text + std::string(unit)};
}

std::optional<Printed> LineCursor::mebibytes() {
  const std::string_view before = rest_;
  std::string text;
  const auto number = decimal(&text);
  const double bytes = number ? number->first * static_cast<double>(kMiB) : 0;
  if (!number || !rest_.starts_with(" MiB") || std::abs(bytes) > kLargest) {
    rest_ = before;
    return std::nullopt;
  }
  const auto half = static_cast<std::int64_t>(number->second * static_cast<double>(kMiB)) + 1;
  rest_.remove_prefix(4);
  return Printed{std::llround(bytes), half, text + " MiB"};
}

}  // namespace plimsoll::verify
