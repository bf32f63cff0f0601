// SPDX-License-Identifier: Apache-2.0
// Pages of /metrics: whatever they hold, figures are finite and not negative, and a percentile of two pages
// lies in the bucket that it names.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench/metrics_text.h"

namespace {

using namespace plimsoll::bench;

void check(const ServerState& state) {
  for (const auto& value : state.figures)
    if (value && !(*value >= 0)) std::abort();
  for (const Buckets* buckets : {&state.ttft, &state.itl})
    for (std::size_t i = 1; i < buckets->buckets.size(); ++i)
      if (!(buckets->buckets[i - 1].upper < buckets->buckets[i].upper)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const ServerState before = read_metrics(text.substr(0, size / 2));
  const ServerState now = read_metrics(text);
  check(before);
  check(now);
  for (const double p : {0.0, 50.0, 99.0, 100.0})
    static_cast<void>(quantile_between(before.ttft, now.ttft, p));
  return 0;
}
