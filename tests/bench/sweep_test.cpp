// SPDX-License-Identifier: Apache-2.0
#include "bench/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace plimsoll::bench {
namespace {

std::vector<double> values_of(const std::string& text) {
  const auto sweep = parse_sweep(text);
  EXPECT_TRUE(sweep) << text;
  return sweep && *sweep ? (*sweep)->values : std::vector<double>{};
}

TEST(Sweep, TakesListsAndDoublingRanges) {
  EXPECT_EQ(values_of("concurrency=1,2,32"), (std::vector<double>{1, 2, 32}));
  EXPECT_EQ(values_of("concurrency=1..32"), (std::vector<double>{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(values_of("concurrency=3..10,100"), (std::vector<double>{3, 6, 10, 100}));
  EXPECT_EQ(values_of("rate=0.5,1..3"), (std::vector<double>{0.5, 1, 2, 3}));
  EXPECT_EQ((*parse_sweep("rate=1"))->axis, LoadAxis::kRate);
  EXPECT_FALSE(parse_sweep("")->has_value());
}

TEST(Sweep, RefusesWhatIsNone) {
  for (const char* text :
       {"speed=1", "concurrency=", "concurrency=1,x", "concurrency=0", "concurrency=1.5", "concurrency=1,",
        "concurrency=8..4", "concurrency=1...3", "rate=nan", "rate=inf", "rate=-1", "rate=0", "rate=1e300",
        "concurrency=1..4,1..1000000,1..1000000,1..1000000,1..1000000,1..1000000,1..1000000"}) {
    const auto refused = parse_sweep(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().where, "--sweep");
  }
}

TEST(Sweep, EachStepHasPromptsOfItsOwn) {
  Options options;
  options.seed = 7;
  const Options second = at_load(options, LoadAxis::kRate, 2.5, 1);
  EXPECT_EQ(second.request_rate, 2.5);
  EXPECT_EQ(second.seed, 8u);
  EXPECT_FALSE(second.max_concurrency);
  EXPECT_EQ(at_load(options, LoadAxis::kConcurrency, 4, 0).max_concurrency, 4);
  EXPECT_EQ(load_text(LoadAxis::kRate, 0.5), "0.5");
  EXPECT_EQ(load_text(LoadAxis::kConcurrency, 32), "32");
}

/// Searches where every value up to `limit` meets; returns what was tried.
std::vector<double> tried(Search& search, double limit) {
  std::vector<double> values;
  while (const auto value = search.next()) {
    values.push_back(*value);
    EXPECT_LT(values.size(), 100u);
    if (values.size() >= 100) break;
    search.tell(*value <= limit);
  }
  return values;
}

TEST(Search, DoublesThenHalvesToNeighbours) {
  Search search({LoadAxis::kConcurrency, 1, 64}, 0);
  EXPECT_EQ(tried(search, 11), (std::vector<double>{1, 2, 4, 8, 16, 12, 10, 11}));
  EXPECT_EQ(search.best(), 11);
  EXPECT_EQ(search.first_miss(), 12);
}

TEST(Search, FindsEveryLimitOfARange) {
  for (int limit = 3; limit <= 50; ++limit) {
    Search search({LoadAxis::kConcurrency, 3, 50}, 0);
    tried(search, limit);
    EXPECT_EQ(search.best(), limit);
    EXPECT_EQ(search.first_miss(), limit == 50 ? std::optional<double>() : limit + 1);
  }
}

TEST(Search, SaysWhenTheAnswerLiesOutside) {
  Search none({LoadAxis::kConcurrency, 4, 64}, 0);
  EXPECT_EQ(tried(none, 3), (std::vector<double>{4}));
  EXPECT_FALSE(none.best());
  EXPECT_EQ(none.first_miss(), 4);
  Search all({LoadAxis::kConcurrency, 1, 6}, 0);
  EXPECT_EQ(tried(all, 100), (std::vector<double>{1, 2, 4, 6}));
  EXPECT_EQ(all.best(), 6);
  EXPECT_FALSE(all.first_miss());
}

TEST(Search, StopsWithinTheTolerance) {
  Search search({LoadAxis::kRate, 0.5, 50}, 0.05);
  tried(search, 7.3);
  ASSERT_TRUE(search.best() && search.first_miss());
  EXPECT_LE(*search.best(), 7.3);
  EXPECT_GT(*search.first_miss(), 7.3);
  EXPECT_LE(*search.first_miss() - *search.best(), 0.05 * *search.best());
}

TEST(Search, ReadsItsRange) {
  const auto range = parse_search("rate=0.5..50");
  ASSERT_TRUE(range && *range);
  EXPECT_EQ((*range)->least, 0.5);
  EXPECT_EQ((*range)->most, 50);
  for (const char* text : {"rate=", "rate=5..1", "rate=1,2", "concurrency=0..4", "x=1..2"})
    EXPECT_FALSE(parse_search(text)) << text;
}

TEST(Search, CountsFailuresAsMisses) {
  Summary summary;
  EXPECT_FALSE(good_share(summary));
  summary.completed = 3;
  summary.failed = 1;
  summary.good = 3;
  EXPECT_EQ(good_share(summary), 0.75);
}

TEST(SweepTable, HasALineForEachStepAndExplainsItsMarks) {
  std::vector<Step> steps(2);
  steps[0].value = 1;
  steps[0].summary.completed = 4;
  steps[0].summary.good = 3;
  steps[0].summary.request_rate_done = 2.5;
  steps[0].has_goals = true;
  steps[1].value = 32;
  steps[1].summary.failed = 1;
  steps[1].summary.client_limited = true;
  const std::string table = to_table(steps);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4);
  EXPECT_NE(table.find("          1     2.50 "), table.npos) << table;
  EXPECT_NE(table.find("    75.0\n"), table.npos) << table;
  EXPECT_NE(table.find(" !f\n"), table.npos) << table;
  EXPECT_NE(table.find("!: the client was the limit."), table.npos);
  EXPECT_EQ(table.find("asked rate"), table.npos);
}

}  // namespace
}  // namespace plimsoll::bench
