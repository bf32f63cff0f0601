// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the report: means, percentiles, peaks. Pure functions of numbers; know no request.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll::bench {

/// Linear interpolation between the closest ranks of ascending `sorted`, as numpy.percentile; 0 <= p <= 100.
/// Nothing when there is no value.
std::optional<double> percentile(const std::vector<double>& sorted, double p);

struct Moments {
  std::optional<double> mean;
  std::optional<double> deviation;  // population (numpy's default, ddof 0)
};
Moments moments(const std::vector<double>& values);

/// A set of samples, sorted once.
class Samples {
 public:
  Samples() = default;
  explicit Samples(std::vector<double> values);
  std::int64_t count() const { return static_cast<std::int64_t>(sorted_.size()); }
  std::optional<double> mean() const { return moments_.mean; }
  std::optional<double> deviation() const { return moments_.deviation; }
  std::optional<double> at(double p) const { return percentile(sorted_, p); }
  std::optional<double> max() const { return at(100); }

 private:
  std::vector<double> sorted_;
  Moments moments_;
};

/// Most intervals [start, end) that overlap in one instant; an end at the same instant as a start comes
/// first.
std::int64_t peak_overlap(const std::vector<std::pair<double, double>>& intervals);

struct Weighted {
  double at_s = 0;
  std::int64_t count = 0;
};
/// Largest sum of counts in one of the one-second buckets that begin at `origin_s`, as vLLM cuts them.
std::int64_t peak_per_bucket(const std::vector<Weighted>& events, double origin_s);
/// Largest sum of counts in any window of one second.
std::int64_t peak_per_window(std::vector<Weighted> events);

/// (deviation / mean)^2 of the gaps between ascending times: 1 for Poisson arrivals, 0 for constant ones.
/// Nothing with fewer than two gaps.
std::optional<double> squared_variation_of_gaps(const std::vector<double>& times);
/// (n - 1) / (last - first) of ascending times. Nothing with fewer than two or no span.
std::optional<double> rate_of(const std::vector<double>& times);

}  // namespace plimsoll::bench
