// SPDX-License-Identifier: Apache-2.0
#include "bench/resample.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "bench/statistics.h"

namespace plimsoll::bench {
namespace {

// Values looked at in all: about a second of work for each latency.
constexpr std::int64_t kMaxSteps = 100'000'000;
constexpr std::int64_t kMostResamples = 10'000;
constexpr std::int64_t kFewestResamples = 100;

/// Values in order, each with the request that it is of, so that a draw of requests needs no sorting.
class Population {
 public:
  explicit Population(const Clusters& clusters) : sizes_(clusters.size()), sums_(clusters.size()) {
    for (std::size_t owner = 0; owner < clusters.size(); ++owner)
      for (const double value : clusters[owner]) {
        values_.push_back({value, owner});
        ++sizes_[owner];
        sums_[owner] += value;
      }
    std::sort(values_.begin(), values_.end(), [](const auto& x, const auto& y) { return x.value < y.value; });
  }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }

  /// Of the sample in which request i stands `times[i]` times.
  Figures figures(const std::vector<std::int64_t>& times) const {
    std::int64_t n = 0;
    double sum = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      n += times[i] * sizes_[i];
      sum += static_cast<double>(times[i]) * sums_[i];
    }
    Walk walk{*this, times};
    const double median = walk.at(0.50, n);
    return {sum / static_cast<double>(n), median, walk.at(0.99, n)};
  }

 private:
  struct Value {
    double value;
    std::size_t owner;
  };

  /// Goes up through the values once; quantiles are asked for in ascending order.
  struct Walk {
    const Population& of;
    const std::vector<std::int64_t>& times;
    std::size_t next = 0;
    std::int64_t passed = 0;  // samples before values_[next]

    double ranked(std::int64_t rank) {
      while (passed + times[of.values_[next].owner] <= rank) passed += times[of.values_[next++].owner];
      return of.values_[next].value;
    }
    double at(double part, std::int64_t n) {
      const double rank = part * static_cast<double>(n - 1);
      const auto below = static_cast<std::int64_t>(rank);
      const double low = ranked(below);
      Walk ahead = *this;  // the next quantile may lie between the same two ranks
      const double high = ahead.ranked(std::min(below + 1, n - 1));
      return low + (high - low) * (rank - static_cast<double>(below));
    }
  };

  std::vector<Value> values_;
  std::vector<std::int64_t> sizes_;
  std::vector<double> sums_;
};

std::vector<std::int64_t> draw(std::size_t n, std::mt19937_64& random) {
  std::vector<std::int64_t> times(n, 0);
  for (std::size_t i = 0; i < n; ++i) ++times[random() % n];
  return times;
}

Interval middle_95(std::vector<double>& differences) {
  const Samples samples(differences);
  return {*samples.at(2.5), *samples.at(97.5)};
}

}  // namespace

std::optional<Figures> figures_of(const Clusters& clusters) {
  const Population population(clusters);
  if (population.size() == 0) return std::nullopt;
  return population.figures(std::vector<std::int64_t>(clusters.size(), 1));
}

std::optional<Resampled> resample_difference(const Clusters& a, const Clusters& b, std::uint64_t seed) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  const Population of_a(a);
  const Population of_b(b);
  const std::int64_t num_values = of_a.size() + of_b.size();
  Resampled result;
  result.num_resamples = std::clamp(kMaxSteps / num_values, kFewestResamples, kMostResamples);
  std::mt19937_64 random(seed);
  std::array<std::vector<double>, kNumStatistics> differences;
  for (std::int64_t i = 0; i < result.num_resamples; ++i) {
    const Figures in_a = of_a.figures(draw(a.size(), random));
    const Figures in_b = of_b.figures(draw(b.size(), random));
    for (std::size_t s = 0; s < kNumStatistics; ++s) differences[s].push_back(in_b[s] - in_a[s]);
  }
  for (std::size_t s = 0; s < kNumStatistics; ++s) result.difference[s] = middle_95(differences[s]);
  return result;
}

}  // namespace plimsoll::bench
