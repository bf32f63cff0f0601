// SPDX-License-Identifier: Apache-2.0
#include "bench/load_shape.h"

#include <cmath>
#include <random>

namespace plimsoll::bench {

std::vector<double> send_times(const LoadShape& shape) {
  std::vector<double> times(static_cast<std::size_t>(shape.num_requests), 0.0);
  if (times.empty() || std::isinf(shape.rate)) return times;
  if (std::isinf(shape.burstiness)) {
    for (std::size_t k = 0; k < times.size(); ++k) times[k] = static_cast<double>(k) / shape.rate;
    return times;
  }
  std::mt19937_64 random(shape.seed);
  std::gamma_distribution<double> gap(shape.burstiness, 1.0 / (shape.rate * shape.burstiness));
  double at = 0;
  for (double& time : times) time = at += gap(random);
  if (at <= 0) return times;
  const double scale = static_cast<double>(times.size()) / shape.rate / at;
  for (double& time : times) time *= scale;
  return times;
}

}  // namespace plimsoll::bench
