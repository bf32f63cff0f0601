// SPDX-License-Identifier: Apache-2.0
// In which words does vLLM tell that its cache does, or does not, hold the longest request? Pure; any thread
// may call. Source: kv_cache_utils.py of the releases; docs/formulas/vllm_kv_cache.md, section 7.
#pragma once

#include <string>

#include "memory/vllm_kv.h"

namespace plimsoll::memory {

/// "16.0", "22.08": GiB as the newest releases round them.
std::string vllm_gib(Bytes bytes);

/// The capacity line of a plan that fits.
std::string vllm_capacity_line(const VllmKvPlan& plan);

/// What a request of the longest length needs on one rank, and what there is.
struct VllmShortage {
  std::int64_t max_model_len = 0;
  Bytes required, available;
  std::int64_t longest_len = 0;  // that fits; 0 when not even one token does
};

/// Why the engine does not start: no byte is left for the cache, or too few.
std::string vllm_refusal(const VllmShortage& shortage, const VllmRules& rules);

/// Why it does not start where it was to choose the length itself (0.14 and later).
std::string vllm_auto_refusal();

}  // namespace plimsoll::memory
