// SPDX-License-Identifier: Apache-2.0
// Random traces beside the naive model, all rules after every event. PLIMSOLL_TRACE_STEPS asks for more steps
// than the fast run's.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/schedule/player.h"

namespace plimsoll::schedule {
namespace {

constexpr int kEvents = 600;

TEST(RandomTraces, KeepEveryRule) {
  const char* const asked_steps = std::getenv("PLIMSOLL_TRACE_STEPS");
  const std::int64_t wanted = asked_steps ? std::atoll(asked_steps) : 20'000;
  Played sum;
  std::uint32_t seed = 1;
  for (; sum.steps < wanted; ++seed) {
    const Trace trace = make_trace(seed, kEvents);
    const Played played = play(trace);
    if (!played.failure.empty()) {
      const Trace least = shrink(trace, [](const Trace& t) { return !play(t).failure.empty(); });
      FAIL() << "seed " << seed << ", " << played.failure << "\nshrunk: " << play(least).failure << "\n"
             << as_test(least);
    }
    sum.steps += played.steps;
    sum.preemptions += played.preemptions;
    sum.hit_tokens += played.hit_tokens;
    sum.copies += played.copies;
    sum.evictions += played.evictions;
    sum.refusals += played.refusals;
    sum.forks += played.forks;
    sum.slid_blocks += played.slid_blocks;
  }
  std::printf(
      "seeds 1 to %u, %lld steps: %lld preemptions, %lld tokens found, %lld copies, %lld evictions, "
      "%lld refusals, %lld forks\n",
      seed - 1, static_cast<long long>(sum.steps), static_cast<long long>(sum.preemptions),
      static_cast<long long>(sum.hit_tokens), static_cast<long long>(sum.copies),
      static_cast<long long>(sum.evictions), static_cast<long long>(sum.refusals),
      static_cast<long long>(sum.forks));
  for (const std::int64_t happened :
       {sum.preemptions, sum.hit_tokens, sum.copies, sum.evictions, sum.refusals, sum.forks, sum.slid_blocks})
    EXPECT_GT(happened, 100) << "the traces reach every rule";
}

TEST(Shrinking, LeavesWhatTheFailureNeeds) {
  const Trace trace = make_trace(5, kEvents);
  const auto fails = [](const Trace& t) {  // a long prompt, and later somebody cancels
    bool has_long = false;
    for (const Event& event : t.events) {
      has_long |= event.kind == EventKind::kAdd && event.prompt > 20;
      if (has_long && event.kind == EventKind::kCancel) return true;
    }
    return false;
  };
  ASSERT_TRUE(fails(trace));
  const Trace least = shrink(trace, fails);
  ASSERT_EQ(least.events.size(), 2u);
  EXPECT_EQ(least.events[0].prompt, 21);
  EXPECT_EQ(least.events[0].user, 0);
  const std::string test = as_test(least);
  EXPECT_NE(test.find("{EventKind::kAdd, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0},\n"), std::string::npos) << test;
  EXPECT_NE(test.find("{EventKind::kCancel, 0},\n"), std::string::npos) << test;
}

}  // namespace
}  // namespace plimsoll::schedule
