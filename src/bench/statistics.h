// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the report: means, percentiles, peaks. Pure functions of numbers; know no request.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll::bench {

struct Moments {
  std::optional<double> mean;
  std::optional<double> deviation;  // population (numpy's default, ddof 0)
};
Moments moments(const std::vector<double>& values);

/// A value that stands for several equal samples.
struct Repeated {
  double value = 0;
  std::int64_t times = 0;
};

/// A set of samples, sorted once. Repeated ones are not written out: a server may claim any count.
class Samples {
 public:
  Samples() = default;
  explicit Samples(const std::vector<double>& values);
  explicit Samples(std::vector<Repeated> values);
  std::int64_t count() const { return upto_.empty() ? 0 : upto_.back(); }
  std::optional<double> mean() const { return moments_.mean; }
  std::optional<double> deviation() const { return moments_.deviation; }
  /// Linear interpolation between the closest ranks, as numpy.percentile; 0 <= p <= 100. Nothing when there
  /// is no sample.
  std::optional<double> at(double p) const;
  std::optional<double> max() const { return at(100); }

 private:
  double ranked(std::int64_t rank) const;  // 0 is the smallest

  std::vector<double> sorted_;
  std::vector<std::int64_t> upto_;  // samples up to and with this value
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
