// SPDX-License-Identifier: Apache-2.0
// The flags of `plan`, and the settings that they mean. Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/llama_cpp_flags.h"
#include "cli/verbs.h"
#include "plan/plan.h"

namespace plimsoll::cli {

/// Flags of vLLM that reach its arithmetic, under vLLM's names.
struct VllmFlags {
  std::optional<int> tensor_parallel, pipeline_parallel, data_parallel, decode_context_parallel;
  bool is_expert_parallel = false, has_no_async = false, is_eager = false, is_language_only = false;
  std::optional<bool> prefix_caching, disables_hybrid_manager;
  std::string state_mode, state_dtype, index_dtype, prefill_backend, speculative, encoder_mode, engram;
};

struct PlanFlags {
  CommonFlags common;
  std::string engine, against, accounting;
  std::vector<std::string> models, gpus, prices;
  bool is_here = false, is_search = false;
  std::string max_model_len, kv_cache_bytes, num_blocks, block_size, max_num_seqs, max_num_batched_tokens,
      threads;
  std::string kv_cache_dtype = "auto", dtype = "auto", quantization;
  std::string gpu_memory, gpu_free;
  std::optional<double> utilization;
  VllmFlags vllm;
  LlamaCppFlags llama_cpp;
};

void add_plan_flags(CLI::App& verb, PlanFlags& flags);

/// What the flags say of the engine's settings. Errors: kUsage for values that are none; kUnsupported for
/// drafts that are not modelled.
Result<plan::Settings> plan_settings(const PlanFlags& flags);

/// A flag's size: plain or with a unit; nothing for an empty text. Errors: kUsage for what is none.
Result<std::optional<std::int64_t>> plan_size(const std::string& text, const char* flag);

}  // namespace plimsoll::cli
