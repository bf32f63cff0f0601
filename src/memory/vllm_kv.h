// SPDX-License-Identifier: Apache-2.0
// How many tokens and requests does vLLM's KV cache hold in so many bytes, block by block as the engine
// counts? Groups the layers, sizes a block, counts blocks, checks the longest request and writes the engine's
// own sentence. Integers throughout, but for the ratios the engine computes in doubles. Leaves open where the
// bytes come from (budget, weights). Pure; any thread may call. Source: docs/formulas/vllm_kv_cache.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "memory/vllm_layers.h"
#include "memory/vllm_rules.h"

namespace plimsoll::memory {

/// --mamba-cache-mode: what of a state is kept for prefixes.
enum class VllmStateMode { kNone, kAlign, kAll };

struct VllmKvSettings {
  std::int64_t block_size = 16;     // tokens; states may make it longer
  std::int64_t kernel_tokens = 16;  // beside states a block is a whole number of these
  std::int64_t max_model_len = 0;
  std::int64_t longest_asked = 0;  // up to where the longest length that fits is looked for; 0: max_model_len
  std::int64_t max_num_batched_tokens = 8192;
  int batches_in_flight = 2;
  VllmStateMode state_mode = VllmStateMode::kAlign;
  bool is_hybrid_manager_on = true;  // else layers with windows or chunks keep all tokens, beside full ones
  int pipeline_parallel = 1;
  int decode_context_parallel = 1;
  int num_speculative_tokens = 0;
  std::optional<std::int64_t> num_blocks_override = {};
};

/// Layers that share one table of blocks.
struct VllmGroup {
  VllmKind kind = VllmKind::kFull;
  std::int64_t num_layers = 0;          // on the first pipeline stage
  std::int64_t block_size = 0;          // tokens
  Bytes page;                           // of one layer's block
  std::int64_t blocks_per_request = 0;  // of the longest length
};

struct VllmKvPlan {
  std::vector<VllmGroup> groups;
  std::vector<Bytes> bytes_per_block;            // of each pipeline stage
  std::int64_t block_size = 0;                   // the smallest of the groups
  std::optional<std::int64_t> state_block_size;  // that states made the attention's block
  Bytes available;                               // that the longest request is held against
  Bytes required;                                // that one request of the longest length takes
  std::int64_t max_model_len = 0;                // that was asked about
  bool fits = false;
  std::int64_t num_blocks = 0;  // the null block among them; 0 when it does not fit, as what follows
  std::int64_t kv_tokens = 0;   // as this release logs them
  double max_concurrency = 0;
  std::int64_t longest_len = 0;  // that fits; 0 when not even one token does
  std::string message;           // the capacity line, or why the engine refuses to start
};

/// `available`: bytes for keys and values of each rank. Errors: kUsage for settings below 1; kMalformed for
/// sizes that do not fit 63 bits; kUnsupported where pages of the kinds cannot be made equal. Not fitting is
/// no error.
Result<VllmKvPlan> plan_vllm_kv(const std::vector<VllmLayer>& layers, std::int64_t num_model_layers,
                                const VllmKvSettings& settings, const VllmRules& rules, Bytes available);

/// The stage of each of `num_layers` layers: as many to each, the rest one by one to the stages before the
/// last, backwards.
std::vector<int> pipeline_stages(std::int64_t num_layers, int num_stages);

}  // namespace plimsoll::memory
