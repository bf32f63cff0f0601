// SPDX-License-Identifier: Apache-2.0
// How many tokens fit, by the four numbers one can hold in the head: memory, share, weights, reserve?
// A first estimate without any engine's habits; real engines are modelled elsewhere. Pure functions.
#pragma once

#include "base/result.h"
#include "base/units.h"
#include "memory/weights.h"

namespace plimsoll::memory {

struct SimpleInput {
  Bytes weights;             // over all GPUs
  Bytes kv_bytes_per_token;  // over all GPUs, in the cache's dtype
  std::int64_t num_gpus = 1;
  Bytes gpu_memory;  // of one GPU; GB is 10^9 here
  std::int64_t max_model_len = 0;
  double memory_utilization = 0.92;
  Bytes reserve_per_gpu = Bytes(2 * kGB);  // activations, graphs, buffers: assumed, not measured
};

struct SimplePlan {
  Bytes budget;      // what the share allows, over all GPUs
  Bytes reserve;     // over all GPUs
  Bytes kv_cache;    // what is left for keys and values; negative when the weights do not fit
  Tokens kv_tokens;  // to the nearest, as the document's table prints them
  double max_concurrency = 0;
  bool fits = false;         // one request of max_model_len has room
  Tokens longest_model_len;  // whole tokens that the pool holds
  Bytes required_kv_cache;   // of one request of max_model_len
};

/// Errors: kUsage for counts, lengths or shares that make no sense (a share outside (0, 1], no GPU), or sizes
/// beyond 63 bits; kUnsupported when no token costs anything.
/// Source: docs/formulas/simple_accounting.md.
Result<SimplePlan> plan_simple(const SimpleInput& input);

}  // namespace plimsoll::memory
