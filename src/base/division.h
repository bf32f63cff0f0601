// SPDX-License-Identifier: Apache-2.0
// Whole parts of a whole. Pure.
#pragma once

#include <cstdint>

namespace plimsoll {

/// Parts of `size` that hold `amount`, the last one perhaps not full. For amounts of at least 0, sizes of at
/// least 1.
constexpr std::int64_t divided_up(std::int64_t amount, std::int64_t size) {
  return amount / size + (amount % size != 0 ? 1 : 0);
}

}  // namespace plimsoll
