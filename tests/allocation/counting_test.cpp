// SPDX-License-Identifier: Apache-2.0
#include "tests/allocation/counting.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace plimsoll::testing {
namespace {

struct alignas(128) Wide {
  char bytes[128];
};

TEST(Counting, SeesEveryFormOfNewOnEveryThread) {
  const std::int64_t before = num_allocations();
  const auto one = std::make_unique<int>(1);
  const auto many = std::make_unique<int[]>(100);
  const auto wide = std::make_unique<Wide>();
  EXPECT_EQ(num_allocations() - before, 3);
  std::thread([&] { std::make_unique<Wide[]>(2); }).join();
  EXPECT_GT(num_allocations() - before, 3);
}

}  // namespace
}  // namespace plimsoll::testing
