// SPDX-License-Identifier: Apache-2.0
// Is a difference of two samples more than chance? Bootstrap intervals. Pure, and the same for the same seed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll::bench {

enum class Statistic { kMean, kMedian, kP99 };
constexpr std::size_t kNumStatistics = 3;
using Figures = std::array<double, kNumStatistics>;  // by Statistic

/// The values of each request, at least one: those of one request hang together and are drawn together.
using Clusters = std::vector<std::vector<double>>;

/// Mean, median and 99th percentile (linear between ranks) over all values; nothing without any.
std::optional<Figures> figures_of(const Clusters& clusters);

struct Interval {
  double low = 0;
  double high = 0;
};
struct Resampled {
  std::array<Interval, kNumStatistics> difference;  // of b - a; 95 %, by percentiles of the resamples
  std::int64_t num_resamples = 0;
};
/// Draws the requests of both samples with replacement, 10,000 times, or fewer where there are more than
/// 10,000 values. Nothing when a sample has fewer than two requests.
std::optional<Resampled> resample_difference(const Clusters& a, const Clusters& b, std::uint64_t seed);

}  // namespace plimsoll::bench
