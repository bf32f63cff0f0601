// SPDX-License-Identifier: Apache-2.0
// What the prefix cache holds can be carried into another scheduler: the same prefixes, in the same order of
// eviction.
#include <gtest/gtest.h>

#include <random>

#include "schedule/schedule.h"

namespace plimsoll::schedule {
namespace {

Options options_of(std::int64_t num_blocks) {
  Options options;
  options.num_blocks = Blocks(num_blocks);
  options.block_size = 4;
  options.groups = {GrowingCache{}, WindowedCache{6}, StateCache{}};
  options.max_num_batched_tokens = 16;
  return options;
}

void run(Scheduler& scheduler, SequenceId id, std::vector<TokenId> prompt, const std::string& salt,
         std::int64_t answer) {
  Request request;
  request.id = id;
  request.final_tokens = Tokens(std::ssize(prompt) + answer);
  request.prompt = std::move(prompt);
  request.cache_salt = salt;
  ASSERT_TRUE(scheduler.add(std::move(request)));
  for (std::int64_t done = 0; done < answer;) {
    const Step step = scheduler.next();
    scheduler.complete(step);
    for (const Work& work : step.work) {
      if (!work.is_last_chunk) continue;
      if (++done < answer) scheduler.append(work.sequence, static_cast<TokenId>(done % 5));
    }
  }
  scheduler.finish(id);
}

// Conversations that share beginnings, so that chains branch and windows and states have gaps.
void fill(Scheduler& scheduler, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<TokenId>> prompts(1, std::vector<TokenId>(9, 1));
  for (SequenceId id = 1; id <= 40; ++id) {
    std::vector<TokenId> prompt = prompts[random() % prompts.size()];
    for (std::uint64_t more = random() % 20; more > 0; --more)
      prompt.push_back(static_cast<TokenId>(random() % 3));
    prompts.push_back(prompt);
    run(scheduler, id, prompt, random() % 4 == 0 ? "salt" : "", 1 + static_cast<std::int64_t>(random() % 6));
  }
}

TEST(Restore, BringsTheSamePrefixesInTheSameOrder) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Scheduler first(options_of(60 + static_cast<std::int64_t>(seed)));
    fill(first, seed);
    const auto kept = first.kept_prefixes();
    ASSERT_GT(kept.size(), 5u);
    auto carried = kept;
    Scheduler second(options_of(60 + static_cast<std::int64_t>(seed)));
    ASSERT_TRUE(second.restore(carried));
    EXPECT_EQ(second.stats().blocks_cached, first.stats().blocks_cached);
    EXPECT_EQ(second.stats().blocks_used.value, 0);
    const auto again = second.kept_prefixes();
    ASSERT_EQ(again.size(), kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(again[i].parent, kept[i].parent);
      EXPECT_EQ(again[i].tokens, kept[i].tokens);
      EXPECT_EQ(again[i].key, kept[i].key);
      EXPECT_EQ(again[i].blocks, carried[i].blocks);
      for (std::size_t g = 0; g < 3; ++g)
        EXPECT_EQ(again[i].blocks[g] == kNoBlock, kept[i].blocks[g] == kNoBlock);
    }
    // And they serve: every prompt finds as much in both.
    for (const std::string salt : {"", "salt"}) {
      std::vector<TokenId> prompt(30, 1);
      const SequenceId id = salt.empty() ? 1000 : 1001;
      for (Scheduler* scheduler : {&first, &second}) {
        Request request;
        request.id = id;
        request.prompt = prompt;
        request.final_tokens = Tokens(31);
        request.cache_salt = salt;
        ASSERT_TRUE(scheduler->add(std::move(request)));
        scheduler->next();
      }
      EXPECT_EQ(first.cached_prompt_tokens(id), second.cached_prompt_tokens(id));
    }
  }
}

TEST(Restore, TakesTheFrontOfTheListIntoASmallerPool) {
  Scheduler first(options_of(200));
  fill(first, 7);
  auto kept = first.kept_prefixes();
  Scheduler second(options_of(70));
  ASSERT_TRUE(second.restore(kept));
  EXPECT_EQ(second.stats().blocks_cached.value, 70);
  EXPECT_EQ(second.stats().blocks_evicted.value, 0);
  bool has_ended = false;  // what is taken is a front of the list: it was used last
  for (const auto& prefix : kept) {
    const bool is_taken = prefix.blocks[0] != kNoBlock;
    EXPECT_FALSE(has_ended && is_taken);
    has_ended |= !is_taken && prefix.blocks[1] == kNoBlock && prefix.blocks[2] == kNoBlock;
  }
  fill(second, 8);  // and the pool works on
  EXPECT_EQ(second.stats().blocks_used.value, 0);
}

TEST(Restore, RefusesAListThatDoesNotHangTogetherAndTakesNothing) {
  const auto sound = [] {
    Scheduler first(options_of(100));
    fill(first, 3);
    return first.kept_prefixes();
  }();
  const auto refused = [&](auto change) {
    auto list = sound;
    change(list);
    Scheduler second(options_of(100));
    const auto status = second.restore(list);
    EXPECT_EQ(second.stats().blocks_cached.value, 0);
    return !status && status.error().code == ErrorCode::kMalformed;
  };
  EXPECT_TRUE(refused([](auto& list) { list[3].parent = 3; }));
  EXPECT_TRUE(refused([](auto& list) { list[3].parent = 1 << 30; }));
  EXPECT_TRUE(refused([](auto& list) { list[3].parent = -2; }));
  EXPECT_TRUE(refused([](auto& list) { list[3].tokens.pop_back(); }));
  EXPECT_TRUE(refused([](auto& list) { list[3].blocks.pop_back(); }));
  auto twice = sound;
  twice.insert(twice.end(), sound.begin(), sound.end());  // the same content again is no harm
  Scheduler second(options_of(300));
  ASSERT_TRUE(second.restore(twice));
  Scheduler first(options_of(100));
  fill(first, 3);
  EXPECT_EQ(second.stats().blocks_cached, first.stats().blocks_cached);
}

}  // namespace
}  // namespace plimsoll::schedule
