// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/schedule/requests.h"

namespace plimsoll::schedule {
namespace {

TEST(Scheduler, PromptsAreChunkedToTheBudgetAndDecodesComeFirst) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 5), 9);
  Step step = run_step(scheduler);
  ASSERT_EQ(step.work.size(), 1u);
  EXPECT_TRUE(step.work[0].is_last_chunk);

  add(scheduler, 2, counting(100, 30), 32);
  step = run_step(scheduler);
  ASSERT_EQ(ids(step), (std::vector<SequenceId>{1, 2}));
  EXPECT_EQ(step.work[0].first_position, 5);
  EXPECT_EQ(step.work[0].num_tokens, 1);
  EXPECT_EQ(step.work[1].num_tokens, 15) << "the budget of 16 less one decode";
  EXPECT_FALSE(step.work[1].is_last_chunk);
  step = run_step(scheduler);
  EXPECT_EQ(step.work[1].first_position, 15);
  EXPECT_EQ(step.work[1].num_tokens, 15);
  EXPECT_TRUE(step.work[1].is_last_chunk);
  EXPECT_EQ(scheduler.tokens(2).size(), 31u);
  EXPECT_EQ(scheduler.blocks(2).size(), 8u);
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  Scheduler scheduler(small_pool(4));
  EXPECT_TRUE(scheduler.add(asked(1, counting(0, 3), 16)));
  const Status too_long = scheduler.add(asked(2, counting(0, 3), 17));
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kNo);
  EXPECT_FALSE(scheduler.add(asked(3, counting(0, 17), 0))) << "the prompt alone counts too";
  EXPECT_FALSE(scheduler.add(asked(4, counting(0, 3), INT64_MAX)));
  EXPECT_EQ(scheduler.add(asked(5, {}, 3)).error().code, ErrorCode::kUsage);
  EXPECT_EQ(scheduler.add(asked(1, counting(0, 3), 16)).error().code, ErrorCode::kInternal);
  EXPECT_EQ(scheduler.stats().waiting, 1);
}

TEST(Scheduler, RefusesBeyondTheQueue) {
  Options options = small_pool(4);
  options.max_queue = 2;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 3), 4);
  add(scheduler, 2, counting(0, 3), 4);
  EXPECT_EQ(scheduler.add(asked(3, counting(0, 3), 4)).error().code, ErrorCode::kNo);
}

// What keeps no block: prompts of 10, 5 and 9 tokens in steps of 16.
TEST(Scheduler, PromptsThatAreTakenWholeWaitForAStepWithRoom) {
  Options options = small_pool(0);
  options.groups.clear();
  options.enable_prefix_caching = false;
  options.takes_whole_prompts = true;
  Scheduler scheduler(options);
  for (const auto& [id, tokens] : {std::pair(1, 10), std::pair(2, 5), std::pair(3, 9)})
    add(scheduler, static_cast<SequenceId>(id), counting(0, tokens), tokens);
  EXPECT_EQ(scheduler.add(asked(4, counting(0, 17), 17)).error().code, ErrorCode::kNo);
  const auto take = [&] {
    const Step step = scheduler.next();
    for (const Work& work : step.work) {
      EXPECT_TRUE(work.is_last_chunk);
      EXPECT_EQ(work.first_position, 0);
    }
    scheduler.complete(step);
    for (const SequenceId id : ids(step)) scheduler.finish(id);
    return ids(step);
  };
  EXPECT_EQ(take(), (std::vector<SequenceId>{1, 2}));
  EXPECT_EQ(take(), (std::vector<SequenceId>{3}));
  EXPECT_FALSE(scheduler.has_work());
}

TEST(Scheduler, HighPriorityGoesFirstThenArrival) {
  Options options = small_pool(32);
  options.max_num_seqs = 3;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 2), 8, 5);
  add(scheduler, 2, counting(0, 2), 8, 5);
  add(scheduler, 3, counting(0, 2), 8, -1);
  add(scheduler, 4, counting(0, 2), 8, 5);
  EXPECT_EQ(ids(run_step(scheduler)), (std::vector<SequenceId>{3, 1, 2}));
  scheduler.finish(1);
  EXPECT_EQ(ids(run_step(scheduler)), (std::vector<SequenceId>{3, 2, 4}));
}

TEST(Scheduler, TheLastAdmittedIsRecomputedWhenBlocksRunOut) {
  Scheduler scheduler(small_pool(4));
  add(scheduler, 1, counting(0, 7), 16);
  add(scheduler, 2, counting(100, 7), 16);
  EXPECT_EQ(ids(run_step(scheduler)), (std::vector<SequenceId>{1, 2}));
  run_step(scheduler);  // both are 9 tokens long now, and the pool is full
  const Step step = run_step(scheduler);
  EXPECT_EQ(step.preempted, (std::vector<SequenceId>{2}));
  EXPECT_EQ(ids(step), (std::vector<SequenceId>{1}));
  EXPECT_EQ(scheduler.stats().preemptions, 1);
  EXPECT_EQ(scheduler.stats().waiting, 1);
  EXPECT_TRUE(scheduler.blocks(2).empty());
  EXPECT_EQ(scheduler.tokens(2).size(), 9u) << "what was generated stays";

  scheduler.finish(1);
  const Step again = scheduler.next();
  ASSERT_EQ(ids(again), (std::vector<SequenceId>{2}));
  EXPECT_EQ(again.work[0].first_position + again.work[0].num_tokens, 9);
  EXPECT_TRUE(again.work[0].is_last_chunk);
}

TEST(Scheduler, TheLeastImportantIsPreemptedNotTheNewest) {
  Scheduler scheduler(small_pool(4));
  add(scheduler, 1, counting(0, 7), 16, 9);
  run_step(scheduler);
  add(scheduler, 2, counting(100, 8), 16, 0);
  run_step(scheduler);
  const Step step = run_step(scheduler);
  EXPECT_EQ(step.preempted, (std::vector<SequenceId>{1}));
  EXPECT_EQ(ids(step), (std::vector<SequenceId>{2}));
}

TEST(Scheduler, AStaticBatchIsFullBeforeItStartsAndClosedAfterwards) {
  Options options = small_pool(64);
  options.is_static = true;
  options.max_num_seqs = 3;
  Scheduler scheduler(options);
  for (SequenceId id = 1; id <= 5; ++id) add(scheduler, id, counting(0, 12), 40);
  run_step(scheduler);
  EXPECT_EQ(scheduler.stats().running, 3) << "though 36 prompt tokens take three steps";
  for (int i = 0; i < 4; ++i) run_step(scheduler);
  scheduler.finish(1);
  scheduler.finish(2);
  run_step(scheduler);
  EXPECT_EQ(scheduler.stats().running, 1);
  scheduler.finish(3);
  run_step(scheduler);
  EXPECT_EQ(scheduler.stats().running, 2);
}

TEST(Scheduler, FinishFreesAtOnceWaitingOrRunning) {
  Scheduler scheduler(small_pool(8));
  add(scheduler, 1, counting(0, 6), 8);
  add(scheduler, 2, counting(0, 6), 8);
  run_step(scheduler);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(4));
  scheduler.finish(1);
  scheduler.finish(77);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(2));
  scheduler.finish(2);
  EXPECT_FALSE(scheduler.has_work());
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(0));
  EXPECT_EQ(scheduler.stats().blocks_cached, Blocks(1)) << "the common full block; the twin was not indexed";
  EXPECT_TRUE(scheduler.next().work.empty());
}

TEST(PrefixReuse, ALaterPromptStartsBehindTheCommonBlocks) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 10), 12);
  run_step(scheduler);
  add(scheduler, 2, counting(0, 10), 12);
  const Step step = run_step(scheduler);
  ASSERT_EQ(ids(step), (std::vector<SequenceId>{1, 2}));
  EXPECT_EQ(step.work[1].first_position, 8);
  EXPECT_EQ(step.work[1].num_tokens, 2);
  EXPECT_EQ(scheduler.cached_prompt_tokens(2), 8);
  EXPECT_EQ(scheduler.blocks(1)[1], scheduler.blocks(2)[1]);
  EXPECT_NE(scheduler.blocks(1)[2], scheduler.blocks(2)[2]);
  EXPECT_EQ(scheduler.stats().prefix_queries_tokens, 20);
  EXPECT_EQ(scheduler.stats().prefix_hits_tokens, 8);
  scheduler.finish(1);
  EXPECT_EQ(scheduler.stats().blocks_used, Blocks(3)) << "shared blocks stay while anyone holds them";
}

TEST(PrefixReuse, AFullHitStillComputesTheLastToken) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 8), 12);
  run_step(scheduler);
  scheduler.finish(1);
  add(scheduler, 2, counting(0, 8), 12);
  const Step step = scheduler.next();
  ASSERT_EQ(step.work.size(), 1u);
  EXPECT_EQ(step.work[0].first_position, 4);
  EXPECT_EQ(step.work[0].num_tokens, 4);
}

TEST(PrefixReuse, NothingIsSharedBeforeItIsComputed) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 8), 12);
  const Step first = scheduler.next();
  add(scheduler, 2, counting(0, 8), 12);
  const Step second = scheduler.next();  // before complete(first)
  ASSERT_EQ(ids(second), (std::vector<SequenceId>{2}));
  EXPECT_EQ(second.work[0].first_position, 0);
  scheduler.finish(1);
  scheduler.complete(first);  // its owner is gone: its blocks must not be offered
  add(scheduler, 3, counting(0, 8), 12);
  EXPECT_EQ(scheduler.next().work[0].first_position, 0);
}

TEST(PrefixReuse, SaltsAndDifferentPrefixesKeepBlocksApart) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 12), 24, 0, "alice");
  run_step(scheduler);
  add(scheduler, 2, counting(0, 12), 24, 0, "bob");
  EXPECT_EQ(run_step(scheduler).work[1].first_position, 0);
  add(scheduler, 3, counting(0, 12), 24, 0, "alice");
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(3), 8);
  std::vector<TokenId> other = counting(0, 12);
  other[0] = 5;  // same second block, other first one
  add(scheduler, 4, other, 24, 0, "alice");
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(4), 0);
}

TEST(PrefixReuse, GeneratedTokensServeTheNextTurn) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 3), 12);
  for (int i = 0; i < 6; ++i) run_step(scheduler);
  std::vector<TokenId> next_turn(scheduler.tokens(1).begin(), scheduler.tokens(1).end());
  scheduler.finish(1);
  next_turn.push_back(7);
  add(scheduler, 2, next_turn, 16);
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(2), 8);
}

TEST(PrefixReuse, CanBeTurnedOff) {
  Options options = small_pool(32);
  options.enable_prefix_caching = false;
  Scheduler scheduler(options);
  add(scheduler, 1, counting(0, 8), 12);
  run_step(scheduler);
  add(scheduler, 2, counting(0, 8), 12);
  EXPECT_EQ(run_step(scheduler).work[1].first_position, 0);
  scheduler.finish(1);
  EXPECT_EQ(scheduler.stats().blocks_cached, Blocks(0));
  EXPECT_EQ(scheduler.stats().prefix_queries_tokens, 0);
}

// Prompt logits are wanted of every token: it reads nothing, is not counted as a query, and serves others.
TEST(PrefixReuse, ARequestMayComputeAllOfItsPrompt) {
  Scheduler scheduler(small_pool(32));
  add(scheduler, 1, counting(0, 12), 16);
  run_step(scheduler);
  const auto queries = scheduler.stats().prefix_queries_tokens;
  Request request;
  request.id = 2;
  request.prompt = counting(0, 12);
  request.final_tokens = Tokens(16);
  request.reads_prefixes = false;
  ASSERT_TRUE(scheduler.add(std::move(request)));
  scheduler.next();
  EXPECT_EQ(scheduler.cached_prompt_tokens(2), 0);
  EXPECT_EQ(scheduler.stats().prefix_queries_tokens, queries);
  scheduler.finish(1);
  add(scheduler, 3, counting(0, 12), 16);
  scheduler.next();
  EXPECT_EQ(scheduler.cached_prompt_tokens(3), 8);
}

TEST(PrefixReuse, CachedBlocksYieldToNewPromptsOldestFirst) {
  Scheduler scheduler(small_pool(4));
  add(scheduler, 1, counting(0, 8), 9);
  run_step(scheduler);
  scheduler.finish(1);
  add(scheduler, 2, counting(100, 8), 9);
  run_step(scheduler);
  scheduler.finish(2);
  EXPECT_EQ(scheduler.stats().blocks_cached, Blocks(4));
  add(scheduler, 3, counting(200, 4), 8);  // takes the rear block of the oldest chain
  run_step(scheduler);
  scheduler.finish(3);
  add(scheduler, 4, counting(0, 9), 12);
  run_step(scheduler);
  EXPECT_EQ(scheduler.cached_prompt_tokens(4), 4) << "the front block of sequence 1 is still there";
}

}  // namespace
}  // namespace plimsoll::schedule
