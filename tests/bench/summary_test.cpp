// SPDX-License-Identifier: Apache-2.0
#include "bench/summary.h"

#include <gtest/gtest.h>

#include <limits>

namespace plimsoll::bench {
namespace {

/// A reply of one token per chunk at the given milliseconds after it was sent.
RequestRecord reply(double sent_s, const std::vector<double>& token_ms) {
  RequestRecord record;
  record.scheduled_s = record.eligible_s = record.sent_s = sent_s;
  record.status = 200;
  record.prompt_tokens = 10;
  for (double ms : token_ms) record.chunks.push_back({sent_s + ms / 1e3, 1, 1, false});
  if (!token_ms.empty()) {
    record.first_token_s = record.first_answer_s = record.chunks.front().at_s;
    record.last_token_s = record.chunks.back().at_s;
  }
  record.output_tokens = std::ssize(token_ms);
  record.count_source = CountSource::kUsage;
  record.done_s = sent_s + (token_ms.empty() ? 0.05 : token_ms.back() / 1e3 + 0.001);
  return record;
}

std::vector<double> steps(double first_ms, double gap_ms, int n) {
  std::vector<double> times;
  for (int i = 0; i < n; ++i) times.push_back(first_ms + gap_ms * i);
  return times;
}

// Times are sums of decimal fractions: 1e-9 ms is far below a clock's tick and far above their rounding.
constexpr double kTolerance = 1e-9;

TEST(Summary, FailedRequestsAreInNoSample) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 7; ++i) records.push_back(reply(i, steps(100, 20, 11)));
  records.push_back(reply(7, {}));
  records.back().error = ErrorKind::kHttpStatus;
  records.back().status = 500;
  records.back().error_text = "first";
  records.push_back(records.back());
  records.back().error_text = "second";
  records.push_back(reply(9, {50}));
  records.back().error = ErrorKind::kEarlyClose;
  RunFacts facts;
  facts.duration_s = 10;
  const Summary s = summarize(records, facts);
  EXPECT_EQ(s.completed, 7);
  EXPECT_EQ(s.failed, 3);
  EXPECT_EQ(s.output_tokens, 77);
  EXPECT_EQ(s.input_tokens, 70);
  EXPECT_DOUBLE_EQ(*s.output_rate, 7.7);
  EXPECT_DOUBLE_EQ(*s.total_rate, 14.7);
  for (double p : {0.0, 50.0, 100.0}) {
    EXPECT_NEAR(*s.of(Metric::kTtft).at(p), 100, kTolerance);
    EXPECT_NEAR(*s.of(Metric::kItl).at(p), 20, kTolerance);
    EXPECT_NEAR(*s.of(Metric::kE2el).at(p), 300, kTolerance);
  }
  EXPECT_EQ(s.of(Metric::kE2el).count(), 7);
  ASSERT_EQ(s.errors.size(), 2u);
  EXPECT_EQ(s.errors[0].count, 2);
  EXPECT_EQ(s.errors[0].first_body, "first");
  EXPECT_EQ(s.errors[1].kind, ErrorKind::kEarlyClose);
}

TEST(Summary, ShortRepliesHaveOnlyTheFiguresTheyHave) {
  const std::vector<RequestRecord> records = {reply(0, {}), reply(1, {40}), reply(2, {40, 140}),
                                              reply(3, steps(40, 10, 11))};
  const Summary s = summarize(records, {});
  EXPECT_EQ(s.completed, 4);
  EXPECT_EQ(s.output_tokens, 14);
  EXPECT_EQ(s.of(Metric::kTtft).count(), 3);
  EXPECT_NEAR(*s.of(Metric::kTtft).mean(), 40, kTolerance);
  EXPECT_EQ(s.of(Metric::kTpot).count(), 2);
  EXPECT_NEAR(*s.of(Metric::kTpot).mean(), 55, kTolerance);
  EXPECT_EQ(s.token_gap_ms.count(), 11);
  EXPECT_NEAR(*s.token_gap_ms.mean(), 200.0 / 11, kTolerance);
}

TEST(Summary, GapsAreSharedByTheTokensOfAChunk) {
  RequestRecord record = reply(0, {50, 90, 95, 130});
  record.chunks[1].tokens = 4;
  record.chunks[2].tokens = 0;  // a piece of the next token
  record.chunks[3].tokens = 2;
  record.output_tokens = 7;
  const std::vector<Repeated> gaps = token_gaps_ms(record);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].times, 4);
  EXPECT_NEAR(gaps[0].value, 10, kTolerance);
  EXPECT_EQ(gaps[1].times, 2);
  EXPECT_NEAR(gaps[1].value, 20, kTolerance);
  EXPECT_EQ(chunk_gaps_ms(record).size(), 3u);
  EXPECT_NEAR(*tpot_ms(record), 80.0 / 6, kTolerance);
}

TEST(Summary, CountsGoodRequestsStallsAndPeaks) {
  std::vector<RequestRecord> records = {reply(0, steps(10, 10, 5)), reply(0, steps(60, 10, 5)),
                                        reply(0.5, {10, 20, 320})};
  RunFacts facts;
  facts.duration_s = 2;
  facts.goals = {{Metric::kTtft, 50}, {Metric::kTpot, 100}};
  const Summary s = summarize(records, facts);
  EXPECT_EQ(s.good, 1);  // the second is late, the third slow
  EXPECT_DOUBLE_EQ(*s.goodput, 0.5);
  EXPECT_EQ(s.stalls, 1);
  EXPECT_NEAR(*s.longest_gap_ms, 300, kTolerance);
  EXPECT_EQ(s.peak_concurrency, 2);
  EXPECT_EQ(s.peak_output_tokens_per_bucket, 13);
  EXPECT_EQ(s.live_tokens_peak, 15);  // 10 of the prompt and 5: each ends before the next has a token
}

TEST(Summary, AnItlGoalIsTheRequestsOwn99thPercentile) {
  RequestRecord r;
  r.first_token_s = 0.0;
  r.chunks.push_back({0, 1, 1, false});
  double at = 0;
  for (int i = 0; i < 100; ++i) r.chunks.push_back({at += i == 50 ? 0.5 : 0.01, 1, 1, false});
  r.last_token_s = r.done_s = at;
  r.output_tokens = 101;
  RunFacts facts;
  facts.duration_s = 1;
  // 99 gaps of 10 ms and one of 500: rank 98.01 lies 1 % of the way to the largest.
  facts.goals = {{Metric::kItl, 15}};
  EXPECT_EQ(summarize({r}, facts).good, 1);
  facts.goals = {{Metric::kItl, 14.8}};
  EXPECT_EQ(summarize({r}, facts).good, 0);
  // One token has no gap to be late.
  r.chunks.resize(1);
  r.output_tokens = 1;
  EXPECT_EQ(summarize({r}, facts).good, 1);
}

TEST(Summary, TheClientIsBlamedOnlyWhenItWasBusy) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 100; ++i) {
    records.push_back(reply(0.01 * i + 0.02, {1}));
    records.back().eligible_s = 0.01 * i;
  }
  RunFacts facts;
  facts.duration_s = 1;
  facts.requested_rate = 100;
  facts.cpu_s = 0.1;
  EXPECT_FALSE(summarize(records, facts).client_limited);
  facts.cpu_s = 0.6;
  EXPECT_TRUE(summarize(records, facts).client_limited);
  for (RequestRecord& record : records) record.eligible_s = record.sent_s;
  EXPECT_FALSE(summarize(records, facts).client_limited);
  facts.loop_lag_ms = Samples(std::vector<double>(100, 20.0));
  EXPECT_TRUE(summarize(records, facts).client_limited);
}

TEST(Summary, ARateThatAServerHoldsDownIsNotTheClientsFault) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 100; ++i) records.push_back(reply(0.02 * i, {1}));
  for (RequestRecord& record : records) record.eligible_s = record.sent_s;
  RunFacts facts;
  facts.duration_s = 2;
  facts.cpu_s = 1.8;
  facts.requested_rate = 100;
  EXPECT_TRUE(is_below_rate(summarize(records, facts)));
  EXPECT_FALSE(summarize(records, facts).client_limited);
  facts.requested_rate = 51;  // within the scatter of random arrivals
  EXPECT_FALSE(is_below_rate(summarize(records, facts)));
  facts.requested_rate = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(is_below_rate(summarize(records, facts)));
}

TEST(Summary, ARateIsOfSessionStarts) {
  std::vector<RequestRecord> records;
  for (int i = 0; i < 20; ++i) records.push_back(reply(0.05 * i, {1}));
  for (int i = 0; i < 20; ++i) {
    records.push_back(reply(10 + 0.05 * i, {1}));  // the second turns, long after
    records.back().follows = i;
  }
  RunFacts facts;
  facts.duration_s = 11;
  facts.requested_rate = 20;
  const Summary s = summarize(records, facts);
  ASSERT_TRUE(s.achieved_rate);
  EXPECT_NEAR(*s.achieved_rate, 20, kTolerance);
  EXPECT_FALSE(is_below_rate(s));
}

TEST(Summary, AnEmptyRunHasNoFigures) {
  const Summary s = summarize({}, {});
  EXPECT_EQ(s.completed, 0);
  EXPECT_FALSE(s.request_rate_done);
  EXPECT_FALSE(s.of(Metric::kTtft).mean());
  EXPECT_FALSE(s.live_tokens_mean);
}

}  // namespace
}  // namespace plimsoll::bench
