// SPDX-License-Identifier: Apache-2.0
// How much traffic is meant? The lengths, the concurrency and the rate of a workload as one flag states them,
// and the tokens that are alive in the KV cache at its peak. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace plimsoll::memory {

struct Workload {
  Tokens input;                  // isl: tokens of a prompt
  Tokens output;                 // osl: tokens of an answer
  std::int64_t concurrency = 1;  // requests at once
  std::optional<double> rate;    // requests per second

  /// Tokens in the cache when all requests stand at their last token: what a pool must hold, not the number
  /// of requests.
  Tokens live_tokens() const { return (input + output) * concurrency; }
};

/// Reads "isl=N,osl=N,concurrency=C[,rate=R]", in any order.
/// Errors: kUsage naming the word that is wrong, unknown, given twice or missing, and products beyond 63
/// bits.
Result<Workload> parse_workload(std::string_view text);

}  // namespace plimsoll::memory
