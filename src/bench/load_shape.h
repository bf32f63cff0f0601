// SPDX-License-Identifier: Apache-2.0
// When is each request to leave? Absolute times, fixed before the run, so that a late send does not push the
// later ones. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace plimsoll::bench {

struct LoadShape {
  std::int64_t num_requests = 0;
  double rate = 0;        // per second; infinity: all at once
  double burstiness = 1;  // shape of the gamma distribution of gaps: 1 Poisson, infinity constant
  std::uint64_t seed = 0;
};

/// Seconds from the start, ascending. Random gaps are scaled so that the last request leaves at
/// num_requests / rate, as vLLM does; constant arrivals leave at k / rate from k = 0. The same shape gives
/// the same times.
std::vector<double> send_times(const LoadShape& shape);

}  // namespace plimsoll::bench
