// SPDX-License-Identifier: Apache-2.0
// How late was something, over millions of times? Counts of durations in bounded memory, to within a part in
// 256. Plain values; one thread at a time.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

#include "bench/statistics.h"

namespace plimsoll::bench {

class LagCounts {
 public:
  /// Negative lags count as none.
  void add(std::chrono::nanoseconds lag);
  /// In milliseconds; each count stands at the middle of its step.
  Samples to_samples_ms() const;

 private:
  // Below 256 us steps of 1 us; then 128 steps in each doubling, up to 2^39 us (six days).
  static constexpr std::size_t kSteps = 256 + 31 * 128;
  std::array<std::int64_t, kSteps> counts_{};
};

}  // namespace plimsoll::bench
