// SPDX-License-Identifier: Apache-2.0
// When does each request of a made load arrive? Absolute times, fixed beforehand, so that a late send does
// not push the later ones. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace plimsoll::workload {

enum class RampShape { kLinear, kExponential };
/// linear exponential
std::string_view to_string(RampShape shape);
std::optional<RampShape> ramp_shape_from(std::string_view name);

/// The rate runs from one to the other over the index of the request: request k of n has linearly
/// start + (end - start) k / (n - 1), exponentially start (end / start)^(k / (n - 1)).
struct Ramp {
  RampShape shape = RampShape::kLinear;
  double start_rate = 0;  // per second; above 0 when exponential
  double end_rate = 0;
};

struct Arrivals {
  std::int64_t num_requests = 0;
  double rate = 0;        // per second; infinity: all at once
  double burstiness = 1;  // shape of the gamma distribution of gaps: 1 Poisson, infinity constant
  std::uint64_t seed = 0;
  std::optional<Ramp> ramp = {};  // instead of `rate`
};

/// Seconds from the start, ascending. The same arrivals give the same times.
/// One rate: random gaps are scaled so that the last request arrives at num_requests / rate; constant
/// arrivals come at k / rate from k = 0. A ramp: every gap, the first too, is drawn with the rate of its
/// request and nothing is scaled; a linear ramp from 0 gives its first request the rate of the second.
/// Source: docs/formulas/arrivals.md.
std::vector<double> arrival_times(const Arrivals& arrivals);

}  // namespace plimsoll::workload
