// SPDX-License-Identifier: Apache-2.0
// Whole parts of a whole. Pure.
#pragma once

#include <cstdint>

namespace plimsoll {

/// Parts of `size` that hold `amount`, the last one perhaps not full; 0 for sizes below 1, which hold
/// nothing. For amounts of at least 0.
constexpr std::int64_t divided_up(std::int64_t amount, std::int64_t size) {
  return size > 0 ? amount / size + (amount % size != 0 ? 1 : 0) : 0;
}

}  // namespace plimsoll
