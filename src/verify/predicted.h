// SPDX-License-Identifier: Apache-2.0
// Inside the verify room: what of a plan's row is held against a log. Plain values; pure.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::verify {

struct Predicted {
  bool fits = false;
  std::optional<std::int64_t> weights, kv_cache, kv_tokens, max_model_len, kv_bytes_per_token,
      kv_bytes_per_request, bytes_per_block, block_size, peak;
  std::optional<double> max_concurrency;
  std::int64_t error_bar = 0;    // of kv_cache
  std::int64_t weights_bar = 0;  // of weights; 0 when they are exact
  std::string limited_by;        // what decided the pool's size; empty when the plan does not say
  std::string version;           // of the engine; empty when the plan names none
  std::optional<std::int64_t> gpu_memory, budget;
  std::optional<std::int64_t> activation, sampler, non_torch, graphs;  // of the bill; activation: the larger
  std::int64_t runtime_bar = 0;                                        // of each of these
};

/// The row of a plimsoll.plan/1 document that is compared. Errors: kMalformed, naming its pointer.
Result<const Json*> first_row(const Json& plan);

Predicted predicted_of(const Json& plan, const Json& row);

}  // namespace plimsoll::verify
