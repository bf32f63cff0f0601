// SPDX-License-Identifier: Apache-2.0
#include "bench/lag.h"

#include <algorithm>
#include <bit>

namespace plimsoll::bench {
namespace {

constexpr std::uint64_t kFine = 256;  // up to here every microsecond has its step
constexpr int kFineBits = 8;
constexpr std::uint64_t kPerDoubling = 128;

std::size_t step_of(std::uint64_t us) {
  if (us < kFine) return us;
  const int doubling = static_cast<int>(std::bit_width(us)) - kFineBits - 1;  // 0 for 256..511
  const std::uint64_t part = (us >> (doubling + 1)) - kPerDoubling;
  return kFine + static_cast<std::size_t>(doubling) * kPerDoubling + part;
}

double middle_us(std::size_t step) {
  if (step < kFine) return static_cast<double>(step) + 0.5;
  const auto doubling = (step - kFine) / kPerDoubling;
  const auto part = (step - kFine) % kPerDoubling;
  const double width = static_cast<double>(std::uint64_t{2} << doubling);
  return (static_cast<double>(kPerDoubling + part) + 0.5) * width;
}

}  // namespace

void LagCounts::add(std::chrono::nanoseconds lag) {
  const auto us = static_cast<std::uint64_t>(std::max<std::int64_t>(0, lag.count())) / 1000;
  ++counts_[std::min(step_of(us), kSteps - 1)];
}

Samples LagCounts::to_samples_ms() const {
  std::vector<Repeated> values;
  for (std::size_t step = 0; step < kSteps; ++step)
    if (counts_[step] > 0) values.push_back({middle_us(step) / 1e3, counts_[step]});
  return Samples(std::move(values));
}

}  // namespace plimsoll::bench
