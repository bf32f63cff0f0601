// SPDX-License-Identifier: Apache-2.0
// Windows, states, forks: what each kind of cache group keeps, gives back, copies and finds again.
#include <gtest/gtest.h>

#include <algorithm>

#include "schedule/cache_group.h"
#include "tests/schedule/requests.h"
#include "tests/testing/worked_case.h"

namespace plimsoll::schedule {
namespace {

using Ids = std::vector<BlockId>;

Options with_groups(std::int64_t num_blocks, std::vector<CacheGroup> groups) {
  Options options = small_pool(num_blocks);
  options.groups = std::move(groups);
  return options;
}

Ids table(const Scheduler& scheduler, SequenceId id, int group) {
  const auto blocks = scheduler.blocks(id, group);
  return {blocks.begin(), blocks.end()};
}

std::int64_t num_gone(const Ids& blocks) {
  return std::count(blocks.begin(), blocks.end(), kNoBlock);
}

TEST(Windows, GiveBackWhatSlidOut) {
  // 6 tokens read at once: the token itself and five before it.
  Options options = with_groups(32, {GrowingCache{}, WindowedCache{6}});
  options.enable_prefix_caching = false;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 12), 32);
  run_step(scheduler);
  // The next token stands at 12 and reads from 7 on: only the block of 0..3 is out.
  EXPECT_EQ(num_gone(table(scheduler, 1, 0)), 0);
  EXPECT_EQ(num_gone(table(scheduler, 1, 1)), 1);
  EXPECT_EQ(table(scheduler, 1, 1).front(), kNoBlock);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(3 + 2));
  run_step(scheduler);  // 13 reads from 8 on
  EXPECT_EQ(num_gone(table(scheduler, 1, 1)), 2);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(4 + 2));
  for (int i = 0; i < 18; ++i) run_step(scheduler);
  EXPECT_EQ(table(scheduler, 1, 1).size(), 8u);
  EXPECT_LE(scheduler.stats().blocks_used, Blocks(8 + 3));
  scheduler.finish(1);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(0));
}

TEST(Windows, ALongPromptNeedsItsWindowNotItsLength) {
  // At most ceil((6 - 1 + 16) / 4) + 1 = 7 blocks at once.
  Scheduler scheduler(with_groups(7, {WindowedCache{6}}));
  add(scheduler, 1, counting(0, 200), 300);
  EXPECT_FALSE(Scheduler(with_groups(6, {WindowedCache{6}})).add(asked(1, counting(0, 200), 300)));
  for (int i = 0; i < 13; ++i) EXPECT_EQ(run_step(scheduler).work.size(), 1u);
  EXPECT_EQ(scheduler.tokens(1).size(), 201u);
  EXPECT_EQ(scheduler.stats().preemptions, 0);
}

TEST(Windows, AreFoundByTheirLastBlocksAlone) {
  Options options = with_groups(64, {GrowingCache{}, WindowedCache{6}});
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 40), 48);
  for (int i = 0; i < 3; ++i) run_step(scheduler);
  scheduler.finish(1);
  add(scheduler, 2, counting(0, 40), 48);
  const Step step = run_step(scheduler);
  ASSERT_EQ(step.work.size(), 1u);
  EXPECT_EQ(step.work[0].first_position, 36);
  EXPECT_TRUE(step.copies.empty());
  // Position 36 reads from 31 on.
  EXPECT_EQ(num_gone(table(scheduler, 2, 1)), 7 + 1) << "and 40 reads from 35 on";
  EXPECT_EQ(num_gone(table(scheduler, 2, 0)), 0);
}

TEST(Windows, AHitIsWhereAllGroupsCanServe) {
  Scheduler scheduler(with_groups(18, {GrowingCache{}, WindowedCache{6}}));
  add(scheduler, 1, counting(0, 16), 17);
  run_step(scheduler);
  scheduler.finish(1);
  EXPECT_EQ(scheduler.stats().blocks_cached, Blocks(8));
  // What slid out was released first, and is evicted first: the window's blocks of 0..7.
  add(scheduler, 2, counting(100, 22), 23);
  run_step(scheduler);
  run_step(scheduler);
  scheduler.finish(2);
  EXPECT_EQ(scheduler.stats().blocks_evicted, Blocks(2));
  add(scheduler, 3, counting(0, 17), 18);
  add(scheduler, 4, counting(0, 16), 17);
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(3), 16) << "16 reads from 11 on, which is there";
  EXPECT_EQ(scheduler.cached_prompt_tokens(4), 0) << "12 reads from 7 on, 8 from 3 on, 4 from 0 on";
}

TEST(States, OneBlockWhateverTheLength) {
  Options options = with_groups(12, {GrowingCache{}, StateCache{}});
  options.enable_prefix_caching = false;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 20), 40);
  run_step(scheduler);
  const Ids state = table(scheduler, 1, 1);
  ASSERT_EQ(state.size(), 1u);
  for (int i = 0; i < 15; ++i) EXPECT_TRUE(run_step(scheduler).copies.empty());
  EXPECT_EQ(table(scheduler, 1, 1), state);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(9 + 1));
}

TEST(States, ChunksEndAtBordersAndLeaveSnapshots) {
  Scheduler scheduler(with_groups(40, {GrowingCache{}, StateCache{}}));
  add(scheduler, 1, counting(0, 30), 40);
  Step step = run_step(scheduler);
  EXPECT_EQ(step.work[0].num_tokens, 16);
  const BlockId snapshot = table(scheduler, 1, 1)[0];
  step = run_step(scheduler);
  EXPECT_EQ(step.work[0].num_tokens, 12) << "the last border before the end of the prompt";
  ASSERT_EQ(step.copies.size(), 1u) << "the state of 16 tokens stays, and is copied before it is written";
  EXPECT_EQ(step.copies[0].group, 1);
  EXPECT_EQ(step.copies[0].from, snapshot);
  EXPECT_EQ(step.copies[0].to, table(scheduler, 1, 1)[0]);
  step = run_step(scheduler);
  EXPECT_EQ(step.work[0].num_tokens, 2);
  EXPECT_TRUE(step.work[0].is_last_chunk);
  EXPECT_EQ(step.copies.size(), 1u);

  std::vector<TokenId> other = counting(0, 30);
  other[20] = 999;  // differs behind the first snapshot
  add(scheduler, 2, other, 40);
  step = run_step(scheduler);
  ASSERT_EQ(step.work.size(), 2u);
  EXPECT_EQ(step.work[1].sequence, 2u);
  EXPECT_EQ(step.work[1].first_position, 16);
  ASSERT_EQ(step.copies.size(), 1u);
  EXPECT_EQ(step.copies[0].from, snapshot);
}

TEST(States, AreNotFoundBetweenSnapshots) {
  Options options = with_groups(40, {GrowingCache{}, StateCache{}});
  options.snapshot_blocks = 100;  // so that only the last border of a prompt is kept
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 30), 40);
  for (int i = 0; i < 3; ++i) run_step(scheduler);
  scheduler.finish(1);
  add(scheduler, 2, counting(0, 27), 40);
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(2), 0) << "there are blocks up to 24, and no state";
  add(scheduler, 3, counting(0, 29), 40);
  run_step(scheduler);
  run_step(scheduler);
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(3), 28);
}

TEST(States, ASnapshotIsGivenUpWhenNoBlockIsLeftForACopy) {
  Scheduler scheduler(with_groups(1, {StateCache{}}));
  add(scheduler, 1, counting(0, 40), 60);
  for (int i = 0; i < 3; ++i) {
    const Step step = run_step(scheduler);
    ASSERT_EQ(step.work.size(), 1u);
    EXPECT_TRUE(step.copies.empty());
  }
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(1));
}

TEST(Fork, SharesBlocksAndCopiesTheLastOneWhenItIsWritten) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 10), 20);
  scheduler.complete(scheduler.next());
  ASSERT_TRUE(scheduler.fork(1, 2, 901, Tokens(20)));
  ASSERT_TRUE(scheduler.fork(1, 3, 902, Tokens(20)));
  scheduler.append(1, 900);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(3));
  EXPECT_EQ(table(scheduler, 1, 0), table(scheduler, 3, 0));
  const BlockId tail = table(scheduler, 1, 0)[2];

  const Step step = run_step(scheduler);
  ASSERT_EQ(ids(step), (std::vector<SequenceId>{1, 2, 3}));
  for (const Work& work : step.work) {
    EXPECT_EQ(work.first_position, 10);
    EXPECT_EQ(work.num_tokens, 1);
  }
  ASSERT_EQ(step.copies.size(), 2u) << "the last of three holders keeps the block";
  EXPECT_EQ(step.copies[0].from, tail);
  EXPECT_EQ(step.copies[1].from, tail);
  EXPECT_EQ(table(scheduler, 3, 0)[2], tail);
  EXPECT_EQ(table(scheduler, 1, 0)[1], table(scheduler, 3, 0)[1]);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(5));
  EXPECT_EQ(scheduler.tokens(2)[10], 901);
  for (const SequenceId id : {1, 2, 3}) scheduler.finish(id);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(0));
}

TEST(Fork, StatesAndWindowsAreSharedToo) {
  Scheduler scheduler(with_groups(40, {GrowingCache{}, WindowedCache{6}, StateCache{}}));
  add(scheduler, 1, counting(0, 10), 20);
  scheduler.complete(scheduler.next());  // to the border at 8
  scheduler.complete(scheduler.next());
  ASSERT_TRUE(scheduler.fork(1, 2, 901, Tokens(20)));
  scheduler.append(1, 900);
  const Step step = run_step(scheduler);
  EXPECT_EQ(ids(step), (std::vector<SequenceId>{1, 2}));
  ASSERT_EQ(step.copies.size(), 3u) << "one for each group";
  for (int group = 0; group < 3; ++group)
    EXPECT_NE(table(scheduler, 1, group).back(), table(scheduler, 2, group).back());
}

TEST(Fork, InTheMiddleOfAPromptSharesWhatIsComputed) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 24), 30);
  scheduler.complete(scheduler.next());  // 16 of them
  ASSERT_TRUE(scheduler.fork(1, 2, 901, Tokens(20)));
  EXPECT_EQ(table(scheduler, 2, 0).size(), 4u) << "and not the blocks that the rest of the prompt will fill";
  const Step step = run_step(scheduler);
  EXPECT_EQ(step.work.size(), 2u);
  EXPECT_TRUE(step.copies.empty());
  EXPECT_NE(table(scheduler, 1, 0)[4], table(scheduler, 2, 0)[4]);
}

TEST(Fork, WaitsWithoutASeatAndReadsThePrefixLater) {
  Options options = small_pool(32);
  options.max_num_seqs = 1;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 10), 20);
  add(scheduler, 9, counting(50, 3), 20);
  scheduler.complete(scheduler.next());
  ASSERT_TRUE(scheduler.fork(1, 2, 901, Tokens(20)));
  EXPECT_TRUE(scheduler.blocks(2).empty());
  EXPECT_EQ(scheduler.stats().waiting, 2);
  scheduler.finish(1);
  const Step step = run_step(scheduler);
  ASSERT_EQ(ids(step), (std::vector<SequenceId>{2})) << "it goes before those who were never admitted";
  EXPECT_EQ(step.work[0].first_position, 8);
  EXPECT_EQ(step.work[0].num_tokens, 3);
}

TEST(Fork, IsRefusedWhereThereIsNothingToShare) {
  Scheduler scheduler(small_pool(32));
  EXPECT_EQ(scheduler.fork(1, 2, 0, Tokens(9)).error().code, ErrorCode::kInternal);
  add(scheduler, 1, counting(0, 4), 20);
  EXPECT_FALSE(scheduler.fork(1, 2, 0, Tokens(9))) << "it waits";
  const Step step = scheduler.next();
  EXPECT_FALSE(scheduler.fork(1, 2, 0, Tokens(9))) << "its work is not complete";
  scheduler.complete(step);
  EXPECT_FALSE(scheduler.fork(1, 1, 0, Tokens(9)));
  EXPECT_EQ(scheduler.fork(1, 2, 0, Tokens(1000)).error().code, ErrorCode::kNo);
  EXPECT_TRUE(scheduler.fork(1, 2, 0, Tokens(9)));
}

TEST(Schedule, WorkedCase) {
  const testing::WorkedCase page("schedule.md");
  Options options = with_groups(64, {GrowingCache{}, WindowedCache{page.integer("window")}, StateCache{}});
  options.block_size = static_cast<int>(page.integer("block_size"));
  options.max_num_batched_tokens = static_cast<int>(page.integer("budget"));
  const std::int64_t final_tokens = page.integer("final_tokens");
  const auto most = [&](std::size_t group) {
    return most_held(options.groups[group], final_tokens, options.max_num_batched_tokens, options.block_size);
  };
  EXPECT_EQ(most(0), page.integer("most_blocks_growing"));
  EXPECT_EQ(most(1), page.integer("most_blocks_windowed"));
  EXPECT_EQ(most(2), page.integer("most_blocks_state"));

  Scheduler scheduler(options);
  const auto prompt = counting(0, static_cast<int>(page.integer("prompt_tokens")));
  add(scheduler, 1, prompt, final_tokens);
  for (const char* chunk : {"first_chunk", "second_chunk", "third_chunk"})
    EXPECT_EQ(run_step(scheduler).work.at(0).num_tokens, page.integer(chunk));
  scheduler.finish(1);
  add(scheduler, 2, prompt, final_tokens);
  scheduler.next();
  EXPECT_EQ(scheduler.cached_prompt_tokens(2), page.integer("found_tokens"));
  const Ids found = table(scheduler, 2, 1);
  const auto num_found = static_cast<std::size_t>(page.integer("found_tokens")) / 4;
  EXPECT_EQ(std::count_if(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(num_found),
                          [](BlockId block) { return block != kNoBlock; }),
            page.integer("window_blocks_found"));
}

TEST(Steps, WorkOfAnEarlierStayIsNotTakenForTheLaterOne) {
  Options options = small_pool(4);
  options.enable_prefix_caching = false;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 7), 16);
  run_step(scheduler);
  run_step(scheduler);  // 9 tokens, in three blocks at the next step
  add(scheduler, 2, counting(100, 4), 8);
  const Step ahead = scheduler.next();
  ASSERT_EQ(ids(ahead), (std::vector<SequenceId>{1, 2}));
  scheduler.finish(2);
  add(scheduler, 2, counting(200, 4), 8);  // the same id again
  const Step again = scheduler.next();
  ASSERT_EQ(ids(again), (std::vector<SequenceId>{2}));
  scheduler.complete(ahead);
  EXPECT_FALSE(scheduler.fork(2, 3, 0, Tokens(8))) << "nothing of its own is complete";
  scheduler.complete(again);
  EXPECT_TRUE(scheduler.fork(2, 3, 0, Tokens(5)));
}

}  // namespace
}  // namespace plimsoll::schedule
