// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>

namespace plimsoll {
namespace {

std::string scaled(Bytes bytes, std::int64_t unit, const char* letters) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.2f %s",
                static_cast<double>(bytes.value) / static_cast<double>(unit), letters);
  return text.data();
}

std::optional<std::int64_t> suffix_factor(std::string_view suffix) {
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 19> kFactors{{
      {"", 1},
      {"B", 1},
      {"k", 1'000},
      {"m", 1'000'000},
      {"g", kGB},
      {"t", 1'000 * kGB},
      {"K", kKiB},
      {"M", kMiB},
      {"G", kGiB},
      {"T", 1'024 * kGiB},
      {"kB", 1'000},
      {"KB", 1'000},
      {"MB", 1'000'000},
      {"GB", kGB},
      {"TB", 1'000 * kGB},
      {"KiB", kKiB},
      {"MiB", kMiB},
      {"GiB", kGiB},
      {"TiB", 1'024 * kGiB},
  }};
  for (const auto& [name, factor] : kFactors)
    if (name == suffix) return factor;
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

std::optional<std::int64_t> checked_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

std::string with_commas(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string as_gb(Bytes bytes) {
  return scaled(bytes, kGB, "GB");
}
std::string as_gib(Bytes bytes) {
  return scaled(bytes, kGiB, "GiB");
}

std::optional<std::int64_t> parse_size(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view number = std::string_view(text).substr(0, digits);
  const auto factor = suffix_factor(digits == std::string::npos ? "" : std::string_view(text).substr(digits));
  if (number.empty() || !factor) return std::nullopt;
  if (number.find('.') == std::string_view::npos) {
    std::int64_t whole = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), whole);
    if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
    return checked_product(whole, *factor);
  }
  if (*factor == 1) return std::nullopt;  // there is no part of a token or byte
  double decimal = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), decimal);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  const double value = decimal * static_cast<double>(*factor);
  if (!(value < static_cast<double>(std::numeric_limits<std::int64_t>::max()))) return std::nullopt;
  return std::llround(value);
}

}  // namespace plimsoll
