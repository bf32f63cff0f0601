// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/bench.h"
#include "tests/testing/worked_case.h"

namespace plimsoll::bench {
namespace {

std::vector<RequestRecord> two_requests() {
  std::vector<RequestRecord> records(2);
  const auto fill = [](RequestRecord& r, std::int64_t prompt_tokens, std::vector<Chunk> chunks) {
    r.prompt_tokens = prompt_tokens;
    r.chunks = std::move(chunks);
    r.first_token_s = r.chunks.front().at_s;
    r.last_token_s = r.chunks.back().at_s;
    for (const Chunk& chunk : r.chunks) r.output_tokens += chunk.tokens;
  };
  fill(records[0], 10, {{0.10, 1, 1, true}, {0.30, 4, 1, true}, {0.39, 1, 1, true}});
  records[0].done_s = 0.5;
  fill(records[1], 20, {{0.55, 1, 1, true}, {0.64, 1, 1, true}});
  records[1].sent_s = records[1].eligible_s = 0.5;
  records[1].done_s = 1.0;
  return records;
}

Summary with_goals(std::vector<Goal> goals) {
  RunFacts facts;
  facts.duration_s = 1.0;
  facts.max_concurrency = 1;
  facts.goals = std::move(goals);
  return summarize(two_requests(), facts);
}

TEST(Formulas, ThePagesWorkedCase) {
  const testing::WorkedCase page("bench.md");
  const Summary s = with_goals({});
  const auto expect = [&page](const char* row, const std::optional<double>& value) {
    ASSERT_TRUE(value) << row;
    EXPECT_EQ(fmt::format("{:.2f}", *value), page.text(row)) << row;
  };
  expect("mean TTFT", s.of(Metric::kTtft).mean());
  expect("P99 TTFT", s.of(Metric::kTtft).at(99));
  expect("mean TPOT", s.of(Metric::kTpot).mean());
  expect("mean ITL", s.of(Metric::kItl).mean());
  expect("mean ITL per token", s.token_gap_ms.mean());
  expect("mean E2EL", s.of(Metric::kE2el).mean());
  expect("mean TTFT from schedule", s.ttft_from_schedule_ms.mean());
  expect("mean E2EL from schedule", s.of(Metric::kE2elIncludingClientQueue).mean());
  expect("output tokens per second", s.output_rate);
  ASSERT_TRUE(s.steady);
  expect("steady window, s", s.steady->to_s - s.steady->from_s);
  expect("steady output tokens per second", s.steady->output_rate);
  EXPECT_EQ(s.stalls, page.integer("gaps above 100 ms"));
  EXPECT_EQ(s.live_tokens_peak, page.integer("peak live tokens"));
  EXPECT_EQ(with_goals({{Metric::kTtft, 60}}).good, page.integer("good for ttft:60"));
  EXPECT_EQ(with_goals({{Metric::kItl, 89}}).good, page.integer("good for itl:89"));
  EXPECT_EQ(with_goals({{Metric::kItl, 88}}).good, page.integer("good for itl:88"));
}

}  // namespace
}  // namespace plimsoll::bench
