// SPDX-License-Identifier: Apache-2.0
#include "artifact/shape.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll::artifact {
namespace {

std::vector<std::int64_t> values(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

// Two dimensions have their place in the shape, more of them another: a shape goes from the one to the other
// and back by growing and by assignment.
TEST(Shape, KeepsItsDimensionsOnEveryWay) {
  for (std::int64_t rank = 0; rank <= 9; ++rank) {
    std::vector<std::int64_t> wanted;
    Shape grown;
    for (std::int64_t i = 1; i <= rank; ++i) {
      wanted.push_back(i);
      grown.push_back(i);
    }
    EXPECT_EQ(values(grown), wanted);
    EXPECT_EQ(grown, Shape(std::span<const std::int64_t>(wanted)));
    for (std::int64_t other_rank = 0; other_rank <= 9; ++other_rank) {
      Shape other;
      for (std::int64_t i = 0; i < other_rank; ++i) other.push_back(-i);
      const Shape kept = other;
      other = grown;
      EXPECT_EQ(other, grown);
      EXPECT_EQ(kept.size(), static_cast<std::size_t>(other_rank));
      Shape moved = kept;
      moved = std::move(other);
      EXPECT_EQ(moved, grown);
      moved.push_back(7);
      EXPECT_EQ(moved.back(), 7);
      EXPECT_EQ(moved.size(), static_cast<std::size_t>(rank) + 1);
    }
    Shape taken = std::move(grown);
    taken.reverse();
    EXPECT_EQ(values(taken), std::vector<std::int64_t>(wanted.rbegin(), wanted.rend()));
    const Shape& itself = taken;
    taken = itself;
    EXPECT_EQ(taken.size(), static_cast<std::size_t>(rank));
  }
}

}  // namespace
}  // namespace plimsoll::artifact
