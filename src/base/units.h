// SPDX-License-Identifier: Apache-2.0
// Numbers that carry their unit in the type, so that bytes are never added to tokens.
// Also overflow-checked products for sizes that come out of files. Plain values, no ownership.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

template <class Tag>
struct Quantity {
  std::int64_t value = 0;

  constexpr Quantity() = default;
  constexpr explicit Quantity(std::int64_t v) : value(v) {}

  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator+(Quantity other) const { return Quantity(value + other.value); }
  constexpr Quantity operator-(Quantity other) const { return Quantity(value - other.value); }
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  constexpr Quantity operator*(std::int64_t factor) const { return Quantity(value * factor); }
  constexpr std::int64_t operator/(Quantity other) const { return value / other.value; }  // a count, floored
};

using Bytes = Quantity<struct BytesTag>;
using Tokens = Quantity<struct TokensTag>;
using Blocks = Quantity<struct BlocksTag>;

constexpr std::int64_t kKiB = std::int64_t{1} << 10;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kGB = 1'000'000'000;

/// a * b, or nothing when a factor is negative or the product does not fit 63 bits.
std::optional<std::int64_t> checked_product(std::int64_t a, std::int64_t b);
/// a + b, or nothing when a term is negative or the sum does not fit 63 bits.
std::optional<std::int64_t> checked_sum(std::int64_t a, std::int64_t b);

/// "131,072": thousands separated by commas.
std::string with_commas(std::int64_t value);
/// "16.06 GB": 10^9, two decimals, letters always printed.
std::string as_gb(Bytes bytes);
/// "14.96 GiB": 2^30, two decimals, letters always printed.
std::string as_gib(Bytes bytes);

/// Reads a count or size from a flag as the command line promises it: plain integers; `32k` = 32,000 and
/// `32K` = 32,768 (also m/M, g/G, t/T); `500MB` = 10^6, `476MiB` = 2^20. Decimals only where a suffix
/// makes them whole: `22.05GiB`, not `4096.7`. Nothing when it is none of these or below 0.
std::optional<std::int64_t> parse_size(const std::string& text);

}  // namespace plimsoll
