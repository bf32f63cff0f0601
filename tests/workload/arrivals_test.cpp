// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace plimsoll::workload {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> gaps_of(const std::vector<double>& times) {
  std::vector<double> gaps(times.size());
  std::adjacent_difference(times.begin(), times.end(), gaps.begin());
  return gaps;
}

double squared_variation(const std::vector<double>& times) {
  const std::vector<double> gaps = gaps_of(times);
  const double n = static_cast<double>(gaps.size());
  const double mean = std::accumulate(gaps.begin(), gaps.end(), 0.0) / n;
  const double squares = std::inner_product(gaps.begin(), gaps.end(), gaps.begin(), 0.0) / n;
  return squares / (mean * mean) - 1;
}

TEST(Arrivals, ConstantOnesDoNotDrift) {
  const auto times = arrival_times({200, 50, kInf, 0});
  ASSERT_EQ(times.size(), 200u);
  for (std::size_t k = 0; k < times.size(); ++k) EXPECT_DOUBLE_EQ(times[k], static_cast<double>(k) / 50);
  for (double time : arrival_times({10, kInf, 1, 0})) EXPECT_EQ(time, 0);
  EXPECT_TRUE(arrival_times({0, 50, 1, 0}).empty());
}

TEST(Arrivals, RandomOnesHaveTheAskedRateAndScatter) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const auto times = arrival_times({20'000, 50, burstiness, 7});
    EXPECT_NEAR(times.back(), 400, 1e-9);  // the last arrives at n / rate: the mean rate is exact
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
    // The squared variation of a gamma is 1 / shape. Of 20,000 exponential gaps it scatters by 2 %; 5 % is
    // the goal that is held for this seed.
    EXPECT_NEAR(squared_variation(times) * burstiness, 1, 0.05) << burstiness;
    EXPECT_EQ(times, arrival_times({20'000, 50, burstiness, 7}));
    EXPECT_NE(times, arrival_times({20'000, 50, burstiness, 8}));
  }
}

TEST(Arrivals, RampsRunOverTheIndex) {
  // Rates 10, 20, 30: gaps 1/10, 1/20, 1/30, the first one too.
  const auto linear = arrival_times({3, 0, kInf, 0, Ramp{RampShape::kLinear, 10, 30}});
  ASSERT_EQ(linear.size(), 3u);
  EXPECT_DOUBLE_EQ(linear[0], 0.1);
  EXPECT_DOUBLE_EQ(linear[1], 0.1 + 0.05);
  EXPECT_DOUBLE_EQ(linear[2], 0.1 + 0.05 + 1.0 / 30);
  // Rates 1, 4, 16.
  const auto exponential = arrival_times({3, 0, kInf, 0, Ramp{RampShape::kExponential, 1, 16}});
  EXPECT_DOUBLE_EQ(exponential[2], 1 + 0.25 + 0.0625);
  // From 0 the first takes the rate of the second: 5, 5, 10.
  EXPECT_DOUBLE_EQ(arrival_times({3, 0, kInf, 0, Ramp{RampShape::kLinear, 0, 10}})[2], 0.2 + 0.2 + 0.1);
  EXPECT_DOUBLE_EQ(arrival_times({1, 0, kInf, 0, Ramp{RampShape::kLinear, 2, 10}})[0], 0.5);
}

TEST(Arrivals, RandomRampsScatterAroundTheirRates) {
  const auto times = arrival_times({20'000, 0, 1, 3, Ramp{RampShape::kLinear, 50, 150}});
  // The mean of 1/rate over the ramp is ln(3) / 100; 20,000 exponential gaps scatter by under 1 %.
  EXPECT_NEAR(times.back(), 20'000 * std::log(3.0) / 100, 5);
  const auto gaps = gaps_of(times);
  const double first = std::accumulate(gaps.begin(), gaps.begin() + 2000, 0.0) / 2000;
  const double last = std::accumulate(gaps.end() - 2000, gaps.end(), 0.0) / 2000;
  EXPECT_NEAR(first, 1.0 / 55, 0.002);  // rates 50 to 60 and 140 to 150; 2,000 gaps scatter by 2.2 %
  EXPECT_NEAR(last, 1.0 / 145, 0.0007);
}

TEST(Arrivals, NamesOfRampsGoBothWays) {
  EXPECT_EQ(ramp_shape_from("linear"), RampShape::kLinear);
  EXPECT_EQ(ramp_shape_from(to_string(RampShape::kExponential)), RampShape::kExponential);
  EXPECT_FALSE(ramp_shape_from("stairs"));
}

}  // namespace
}  // namespace plimsoll::workload
