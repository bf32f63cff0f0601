// SPDX-License-Identifier: Apache-2.0
// Random traffic against a small pool. The test plays the engine: it keeps what each slot of each block
// contains and refuses to read a slot that holds anything but the prefix its sequence stands for.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "schedule/schedule.h"

namespace plimsoll::schedule {
namespace {

struct Known {
  std::string salt;
  std::int64_t final_tokens = 0;
  std::size_t stop_at = 0;  // length at which it ends
  int priority = 0;
};

class Engine {
 public:
  Engine(const Options& options, std::uint32_t seed)
      : options_(options),
        scheduler_(options),
        random_(seed),
        slots_(static_cast<std::size_t>(options.num_blocks.value * options.block_size)) {}

  int below(int limit) { return static_cast<int>(random_() % static_cast<std::uint32_t>(limit)); }

  void add_random() {
    std::vector<TokenId> prompt;
    const int most = static_cast<int>(options_.num_blocks.value) * options_.block_size;
    const int length = 1 + below(std::min(most, 60));
    const int shared = below(length + 1);  // of one of two system prompts
    const TokenId system = below(2);
    for (int i = 0; i < length; ++i) prompt.push_back(i < shared ? system : 2 + below(2));
    Known request{below(4) == 0 ? "salted" : "", length + below(30), 0, below(3)};
    request.stop_at = static_cast<std::size_t>(length + 1 + below(30));
    Request asked;
    asked.id = next_id_;
    asked.prompt = prompt;
    asked.final_tokens = Tokens(request.final_tokens);
    asked.priority = request.priority;
    asked.cache_salt = request.salt;
    if (scheduler_.add(asked)) requests_[next_id_] = request;
    ++next_id_;
  }

  void cancel_random() {
    if (requests_.empty()) return;
    auto victim = requests_.begin();
    std::advance(victim, below(static_cast<int>(requests_.size())));
    scheduler_.finish(victim->first);
    requests_.erase(victim);
  }

  // What a slot holds once token `position` was computed: a digest of the salt and all tokens up to it.
  std::uint64_t content(SequenceId id, std::int64_t position) {
    auto& digests = digests_[id];
    const auto tokens = scheduler_.tokens(id);
    for (std::size_t i = digests.size(); std::cmp_less_equal(i, position); ++i) {
      const std::uint64_t before = i > 0 ? digests[i - 1] : requests_.at(id).salt.size() + 1;
      digests.push_back((before ^ static_cast<std::uint64_t>(tokens[i] + 1)) * 0x9e3779b97f4a7c15u + i);
    }
    return digests[static_cast<std::size_t>(position)];
  }
  std::uint64_t& slot(SequenceId id, std::int64_t position) {
    const auto block = scheduler_.blocks(id)[static_cast<std::size_t>(position / options_.block_size)];
    return slots_[static_cast<std::size_t>(block * options_.block_size + position % options_.block_size)];
  }

  void step() {
    const Step step = scheduler_.next();
    check_step(step);
    for (const SequenceId id : step.preempted) computed_[id] = 0;
    for (const Work& work : step.work) {
      for (std::int64_t p = 0; p < work.first_position; ++p)
        ASSERT_EQ(slot(work.sequence, p), content(work.sequence, p)) << "a slot of another prefix is read";
      for (std::int64_t p = work.first_position; p < work.first_position + work.num_tokens; ++p)
        slot(work.sequence, p) = content(work.sequence, p);
    }
    scheduler_.complete(step);
    for (const Work& work : step.work) advance(work);
    check_blocks();
    if (step.work.empty()) {
      ASSERT_TRUE(step.preempted.empty());
      ASSERT_TRUE(requests_.empty()) << "work is left and none is planned";
    }
  }

  void advance(const Work& work) {
    computed_[work.sequence] = work.first_position + work.num_tokens;
    if (!work.is_last_chunk) return;
    const auto length = scheduler_.tokens(work.sequence).size();
    const Known& request = requests_.at(work.sequence);
    if (length >= request.stop_at || std::cmp_greater_equal(length, request.final_tokens)) {
      scheduler_.finish(work.sequence);
      requests_.erase(work.sequence);
      computed_.erase(work.sequence);
    } else {
      scheduler_.append(work.sequence, below(4));
    }
  }

  void check_step(const Step& step) {
    std::int64_t tokens = 0;
    std::set<SequenceId> seen;
    bool is_behind_prefill = false;
    for (const Work& work : step.work) {
      ASSERT_GT(work.num_tokens, 0);
      ASSERT_TRUE(seen.insert(work.sequence).second) << "one share per sequence and step";
      tokens += work.num_tokens;
      const auto end = work.first_position + work.num_tokens;
      const auto length = static_cast<std::int64_t>(scheduler_.tokens(work.sequence).size());
      ASSERT_EQ(work.is_last_chunk, end == length);
      ASSERT_LE(end, length);
      const bool is_decode = work.num_tokens == 1 && computed_[work.sequence] > 0 && work.is_last_chunk;
      ASSERT_FALSE(is_decode && is_behind_prefill);
      is_behind_prefill |= !is_decode;
      if (computed_[work.sequence] > 0) {
        ASSERT_EQ(work.first_position, computed_[work.sequence]);
      }
    }
    for (const SequenceId id : step.preempted) ASSERT_FALSE(seen.contains(id));
    ASSERT_LE(tokens, options_.max_num_batched_tokens);
    ASSERT_LE(std::cmp_less_equal(step.work.size(), options_.max_num_seqs), true);
  }

  void check_blocks() {
    std::set<BlockId> used;
    std::map<BlockId, std::uint64_t> first_slot;
    for (const auto& [id, request] : requests_) {
      std::set<BlockId> own;
      const auto blocks = scheduler_.blocks(id);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_TRUE(own.insert(blocks[i]).second) << "a block stands in one place of a sequence";
        ASSERT_GE(blocks[i], 0);
        ASSERT_LT(blocks[i], options_.num_blocks.value);
        used.insert(blocks[i]);
        const auto position = static_cast<std::int64_t>(i) * options_.block_size;
        if (std::cmp_greater_equal(position, scheduler_.tokens(id).size())) continue;
        const auto [other, is_first] = first_slot.emplace(blocks[i], content(id, position));
        ASSERT_TRUE(is_first || other->second == content(id, position)) << "shared only by equal prefixes";
      }
    }
    const Stats stats = scheduler_.stats();
    ASSERT_EQ(stats.blocks_used.value, static_cast<std::int64_t>(used.size()));
    ASSERT_GE(stats.blocks_cached.value, 0);
    ASSERT_LE((stats.blocks_used + stats.blocks_cached).value, stats.blocks_total.value);
    ASSERT_EQ(stats.running + stats.waiting, static_cast<std::int64_t>(requests_.size()));
    ASSERT_LE(stats.running, options_.max_num_seqs);
  }

  const Scheduler& scheduler() const { return scheduler_; }
  bool is_idle() const { return requests_.empty(); }

 private:
  Options options_;
  Scheduler scheduler_;
  std::mt19937 random_;
  std::vector<std::uint64_t> slots_;  // [blocks, block_size]
  std::map<SequenceId, Known> requests_;
  std::map<SequenceId, std::int64_t> computed_;
  std::map<SequenceId, std::vector<std::uint64_t>> digests_;
  SequenceId next_id_ = 1;
};

class RandomTrace : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrace, ::testing::Range(0, 24));

TEST_P(RandomTrace, KeepsItsInvariantsAndFinishesEveryone) {
  std::mt19937 random(static_cast<std::uint32_t>(GetParam()));
  Options options;
  options.block_size = 1 << (GetParam() % 4);
  options.num_blocks = Blocks(80 / options.block_size + GetParam());
  options.max_num_seqs = 1 + static_cast<int>(random() % 12);
  options.max_num_batched_tokens = 1 + static_cast<int>(random() % 48);
  options.is_static = GetParam() % 6 == 5;
  options.enable_prefix_caching = GetParam() % 5 != 4;
  Engine engine(options, static_cast<std::uint32_t>(GetParam()) + 1000);
  for (int i = 0; i < 250; ++i) {
    for (int arrivals = engine.below(3); arrivals > 0; --arrivals) engine.add_random();
    if (engine.below(12) == 0) engine.cancel_random();
    engine.step();
    if (HasFatalFailure()) return;
  }
  for (int i = 0; i < 100'000 && !engine.is_idle(); ++i) {
    engine.step();
    if (HasFatalFailure()) return;
  }
  EXPECT_TRUE(engine.is_idle()) << "everyone finishes once arrivals stop";
  EXPECT_FALSE(engine.scheduler().has_work());
  EXPECT_EQ(engine.scheduler().stats().blocks_used, Blocks(0));
  RecordProperty("preemptions", static_cast<int>(engine.scheduler().stats().preemptions));
  RecordProperty("hits", static_cast<int>(engine.scheduler().stats().prefix_hits_tokens));
}

}  // namespace
}  // namespace plimsoll::schedule
