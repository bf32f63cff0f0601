// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace plimsoll::bench {

Moments moments(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (double value : values) sum += value;
  const double mean = sum / n;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / n)};
}

namespace {

std::vector<Repeated> once_each(const std::vector<double>& values) {
  std::vector<Repeated> all;
  all.reserve(values.size());
  for (double value : values) all.push_back({value, 1});
  return all;
}

}  // namespace

Samples::Samples(const std::vector<double>& values) : Samples(once_each(values)) {}

Samples::Samples(std::vector<Repeated> values) {
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.value < b.value; });
  std::int64_t n = 0;
  double sum = 0;
  for (const Repeated& sample : values) {
    if (sample.times < 1) continue;
    n += sample.times;
    sum += sample.value * static_cast<double>(sample.times);
    sorted_.push_back(sample.value);
    upto_.push_back(n);
  }
  if (n == 0) return;
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (const Repeated& sample : values)
    squares += (sample.value - mean) * (sample.value - mean) *
               static_cast<double>(std::max<std::int64_t>(0, sample.times));
  moments_ = {mean, std::sqrt(squares / static_cast<double>(n))};
}

double Samples::ranked(std::int64_t rank) const {
  const auto found = std::upper_bound(upto_.begin(), upto_.end(), rank);
  return sorted_[static_cast<std::size_t>(found - upto_.begin())];
}

std::optional<double> Samples::at(double p) const {
  if (upto_.empty()) return std::nullopt;
  const double rank = std::clamp(p, 0.0, 100.0) / 100.0 * static_cast<double>(count() - 1);
  const auto below = static_cast<std::int64_t>(rank);
  const double low = ranked(below);
  const double high = ranked(std::min(below + 1, count() - 1));
  return low + (high - low) * (rank - static_cast<double>(below));
}

std::int64_t peak_overlap(const std::vector<std::pair<double, double>>& intervals) {
  std::vector<std::pair<double, int>> edges;  // -1 sorts before +1 at the same instant
  for (const auto& [start, end] : intervals) {
    edges.emplace_back(start, 1);
    edges.emplace_back(end, -1);
  }
  std::sort(edges.begin(), edges.end());
  std::int64_t now = 0;
  std::int64_t peak = 0;
  for (const auto& [at, step] : edges) peak = std::max(peak, now += step);
  return peak;
}

std::int64_t peak_per_bucket(const std::vector<Weighted>& events, double origin_s) {
  std::map<std::int64_t, std::int64_t> buckets;
  std::int64_t peak = 0;
  for (const Weighted& event : events) {
    std::int64_t& bucket = buckets[static_cast<std::int64_t>(std::floor(event.at_s - origin_s))];
    peak = std::max(peak, bucket += event.count);
  }
  return peak;
}

std::int64_t peak_per_window(std::vector<Weighted> events) {
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
  std::int64_t peak = 0;
  std::int64_t sum = 0;
  std::size_t first = 0;
  for (const Weighted& event : events) {
    sum += event.count;
    while (event.at_s - events[first].at_s >= 1.0) sum -= events[first++].count;
    peak = std::max(peak, sum);
  }
  return peak;
}

std::optional<double> squared_variation_of_gaps(const std::vector<double>& times) {
  if (times.size() < 3) return std::nullopt;
  std::vector<double> gaps;
  for (std::size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  const Moments found = moments(gaps);
  if (*found.mean <= 0) return std::nullopt;
  const double ratio = *found.deviation / *found.mean;
  return ratio * ratio;
}

std::optional<double> rate_of(const std::vector<double>& times) {
  if (times.size() < 2 || times.back() <= times.front()) return std::nullopt;
  return static_cast<double>(times.size() - 1) / (times.back() - times.front());
}

}  // namespace plimsoll::bench
