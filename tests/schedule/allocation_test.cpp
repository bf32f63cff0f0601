// SPDX-License-Identifier: Apache-2.0
// Steps in which everyone decodes must not allocate.
#include <gtest/gtest.h>

#include <numeric>

#include "schedule/schedule.h"
#include "tests/testing/counted_new.h"

namespace plimsoll::schedule {
namespace {

class Allocation : public ::testing::TestWithParam<std::vector<CacheGroup>> {};
INSTANTIATE_TEST_SUITE_P(Groups, Allocation,
                         ::testing::Values(std::vector<CacheGroup>{GrowingCache{}},
                                           std::vector<CacheGroup>{GrowingCache{}, WindowedCache{10},
                                                                   StateCache{}}));

TEST_P(Allocation, DecodeStepsAllocateNothing) {
  Options options;
  options.num_blocks = Blocks(400);
  options.block_size = 4;
  options.groups = GetParam();
  Scheduler scheduler(options);
  for (SequenceId id = 1; id <= 8; ++id) {
    std::vector<TokenId> prompt(20);
    std::iota(prompt.begin(), prompt.end(), static_cast<TokenId>(100 * id));
    Request request;
    request.id = id;
    request.prompt = prompt;
    request.final_tokens = Tokens(100);
    ASSERT_TRUE(scheduler.add(request));
  }
  Step step;
  const auto run = [&] {
    scheduler.next(step);
    scheduler.complete(step);
    for (const Work& work : step.work)
      if (work.is_last_chunk) scheduler.append(work.sequence, 7);
  };
  // States make one chunk more of a prompt; after a block's tokens all their copies have a place.
  for (int i = 0; i < 8; ++i) run();
  const std::size_t before = testing::num_allocations;
  for (int i = 0; i < 60; ++i) run();
  EXPECT_EQ(testing::num_allocations, before) << "over 60 steps, with new blocks and new prefixes";
  EXPECT_EQ(step.work.size(), 8u);
  EXPECT_GE(scheduler.tokens(1).size(), 20u + 8 + 60 - 1);
  EXPECT_GT(before, 8u) << "the counter counts";
}

}  // namespace
}  // namespace plimsoll::schedule
