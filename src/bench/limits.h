// SPDX-License-Identifier: Apache-2.0
// "p99_ttft_ms>500": what a run must not do. Read before the run, held against its result object. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/bench.h"

namespace plimsoll::bench {

enum class Comparison { kAbove, kAtLeast, kBelow, kAtMost };

struct Limit {
  std::string text;  // as it was written
  std::string key;   // of the result object; "plimsoll.itl_ms.p99" for a member of a member
  Comparison comparison = Comparison::kAbove;
  double value = 0;
};

/// Errors: kUsage when it is not KEY, one of > >= < <=, NUMBER.
Result<Limit> parse_limit(std::string_view text);

/// The limits that `result` breaks, each as a sentence. A figure that is null breaks its limit: nobody can
/// say that it was kept. Errors: kUsage for a key that the result does not have.
Result<std::vector<std::string>> broken_limits(const Json& result, const std::vector<Limit>& limits);

/// Are the figures of `limits` in the result of a run with these options? Asked before it is run. What only
/// the server decides (errors, memory, its metrics) may be in it. Errors: kUsage for a key that cannot be
/// there.
Status check_limits(const Options& options, const std::vector<Limit>& limits);

}  // namespace plimsoll::bench
