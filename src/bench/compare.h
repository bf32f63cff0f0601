// SPDX-License-Identifier: Apache-2.0
// What differs between two runs, and is it more than chance? Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "bench/result_file.h"

namespace plimsoll::bench {

/// One figure in both files.
struct Difference {
  std::string metric;     // ttft, output_throughput
  std::string statistic;  // mean, median, p99; empty for what a run has once
  std::string unit;
  bool is_better_low = true;
  std::optional<double> a;
  std::optional<double> b;
  std::optional<Interval> interval;  // 95 %, of b - a; nothing for what a run has once

  std::optional<double> percent() const;        // (b - a) / a
  std::optional<bool> is_beyond_noise() const;  // the interval leaves 0 out
};

struct Compared {
  std::vector<Difference> differences;
  std::int64_t num_resamples = 0;  // the fewest that an interval had; 0: there is none
  std::vector<std::string> remarks;
};

/// Every figure that both files hold. Without the arrays per request in both, latencies have no interval, and
/// a remark says so; settings that differ are remarks too.
Compared compare(const ResultFile& a, const ResultFile& b, std::uint64_t seed);

/// The document plimsoll.bench_compare/1.
Json to_json(const Compared& compared, const ResultFile& a, const ResultFile& b);
/// A table for people.
std::string to_text(const Compared& compared, const ResultFile& a, const ResultFile& b);

}  // namespace plimsoll::bench
