// SPDX-License-Identifier: Apache-2.0
#include "workload/arrivals.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace plimsoll::workload {
namespace {

double rate_of(const Ramp& ramp, std::size_t k, std::size_t n) {
  const double progress = static_cast<double>(k) / static_cast<double>(std::max<std::size_t>(n - 1, 1));
  if (ramp.shape == RampShape::kExponential)
    return ramp.start_rate * std::pow(ramp.end_rate / ramp.start_rate, progress);
  return ramp.start_rate + (ramp.end_rate - ramp.start_rate) * progress;
}

std::vector<double> ramp_times(const Arrivals& arrivals, const Ramp& ramp) {
  std::vector<double> times(static_cast<std::size_t>(arrivals.num_requests));
  std::mt19937_64 random(arrivals.seed);
  // One distribution for all: scaled by each mean gap, so that a ramp from r to r is a run at r.
  std::gamma_distribution<double> unit_gap(std::isinf(arrivals.burstiness) ? 1.0 : arrivals.burstiness);
  double at = 0;
  for (std::size_t k = 0; k < times.size(); ++k) {
    double rate = rate_of(ramp, k, times.size());
    if (!(rate > 0)) rate = rate_of(ramp, k + 1, times.size());
    const bool is_constant = std::isinf(arrivals.burstiness);
    at += (is_constant ? 1.0 : unit_gap(random) / arrivals.burstiness) / rate;
    times[k] = at;
  }
  return times;
}

}  // namespace

std::string_view to_string(RampShape shape) {
  return shape == RampShape::kLinear ? "linear" : "exponential";
}

std::optional<RampShape> ramp_shape_from(std::string_view name) {
  for (const RampShape shape : {RampShape::kLinear, RampShape::kExponential})
    if (name == to_string(shape)) return shape;
  return std::nullopt;
}

std::vector<double> arrival_times(const Arrivals& arrivals) {
  if (arrivals.ramp) return ramp_times(arrivals, *arrivals.ramp);
  std::vector<double> times(static_cast<std::size_t>(arrivals.num_requests), 0.0);
  if (times.empty() || std::isinf(arrivals.rate)) return times;
  if (std::isinf(arrivals.burstiness)) {
    for (std::size_t k = 0; k < times.size(); ++k) times[k] = static_cast<double>(k) / arrivals.rate;
    return times;
  }
  std::mt19937_64 random(arrivals.seed);
  std::gamma_distribution<double> gap(arrivals.burstiness, 1.0 / (arrivals.rate * arrivals.burstiness));
  double at = 0;
  for (double& time : times) time = at += gap(random);
  if (at <= 0) return times;
  const double scale = static_cast<double>(times.size()) / arrivals.rate / at;
  for (double& time : times) time *= scale;
  return times;
}

}  // namespace plimsoll::workload
