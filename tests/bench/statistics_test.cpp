// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.h"

#include <gtest/gtest.h>

namespace plimsoll::bench {
namespace {

TEST(Statistics, PercentilesAreNumpys) {
  // numpy 2.4.6: numpy.percentile, numpy.std, numpy.mean of the same values. 1e-12: a few roundings.
  const Samples samples(std::vector<double>{3, 1, 4, 1, 5, 9, 2, 6.5});
  const std::pair<double, double> expected[] = {{0, 1.0},   {10, 1.0},   {25, 1.75},     {50, 3.5},
                                                {90, 7.25}, {99, 8.825}, {99.9, 8.9825}, {100, 9.0}};
  for (const auto& [p, value] : expected) EXPECT_NEAR(*samples.at(p), value, 1e-12) << p;
  EXPECT_NEAR(*samples.deviation(), 2.6272311946229627, 1e-12);
  EXPECT_DOUBLE_EQ(*samples.mean(), 3.9375);
  EXPECT_EQ(samples.count(), 8);
}

TEST(Statistics, RepeatedSamplesCountAsWrittenOut) {
  const Samples written(std::vector<double>{10, 10, 10, 10, 20, 20, 5});
  const Samples repeated(std::vector<Repeated>{{20, 2}, {10, 4}, {7, 0}, {5, 1}});
  EXPECT_EQ(repeated.count(), 7);
  for (double p : {0.0, 5.0, 50.0, 66.0, 75.0, 99.0, 100.0})
    EXPECT_DOUBLE_EQ(*repeated.at(p), *written.at(p)) << p;
  EXPECT_DOUBLE_EQ(*repeated.mean(), *written.mean());
  EXPECT_NEAR(*repeated.deviation(), *written.deviation(), 1e-12);
  EXPECT_EQ(Samples(std::vector<Repeated>{{1, std::int64_t{1} << 40}}).count(), std::int64_t{1} << 40);
}

TEST(Statistics, NoSamplesHaveNoFigures) {
  const Samples none;
  EXPECT_FALSE(none.mean());
  EXPECT_FALSE(none.deviation());
  EXPECT_FALSE(none.at(50));
  EXPECT_FALSE(none.max());
  EXPECT_EQ(*Samples(std::vector<double>{7}).at(99), 7);
}

TEST(Statistics, PeakOverlapIsExact) {
  EXPECT_EQ(peak_overlap({}), 0);
  EXPECT_EQ(peak_overlap({{0, 10}, {2, 3}, {3, 4}, {3.5, 12}}), 3);
  // Back to back at one concurrency: never two, however short the pause.
  EXPECT_EQ(peak_overlap({{0, 1}, {1, 2}, {2, 3}}), 1);
}

TEST(Statistics, PeaksPerSecondAreOfTokens) {
  const std::vector<Weighted> events = {{0.9, 4}, {1.1, 4}, {1.5, 4}, {2.2, 4}, {9, 1}};
  EXPECT_EQ(peak_per_bucket(events, 0.0), 8);   // [1, 2)
  EXPECT_EQ(peak_per_bucket(events, 0.6), 12);  // [0.6, 1.6)
  EXPECT_EQ(peak_per_window(events), 12);       // 0.9 .. 1.5
  EXPECT_EQ(peak_per_window({}), 0);
}

TEST(Statistics, RatesAndTheirScatter) {
  EXPECT_DOUBLE_EQ(*rate_of({0, 0.5, 1.0, 1.5}), 2.0);
  EXPECT_FALSE(rate_of({1}));
  EXPECT_FALSE(rate_of({1, 1}));
  EXPECT_NEAR(*squared_variation_of_gaps({0, 1, 2, 3}), 0, 1e-15);
  EXPECT_DOUBLE_EQ(*squared_variation_of_gaps({0, 1, 4}), 0.25);  // gaps 1 and 3: mean 2, deviation 1
  EXPECT_FALSE(squared_variation_of_gaps({0, 1}));
}

}  // namespace
}  // namespace plimsoll::bench
