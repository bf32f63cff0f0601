// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: what is left of a GPU for vLLM's cache, part by part, and how sure it is. Pure.
#pragma once

#include "memory/memory.h"
#include "plan/rows.h"

namespace plimsoll::plan {

struct VllmRanks {
  int tensor = 1, pipeline = 1;
  int data = 1;                          // copies of the model
  std::vector<int> stage_of_layer = {};  // empty: vLLM's shares
};

struct VllmMemory {
  memory::VllmBatch batch;
  memory::VllmRuntime runtime;
  std::optional<Bytes> budget;  // absent: the cache's size was given
  double utilization = 0;       // share of the memory that the budget is
  Bytes kv_cache;               // of each rank; below 0 where weights alone are too large
  Bytes taken_by_others;        // before the start, where the release counts it
  std::string refusal;          // the engine's sentence where it does not even load
  bool has_unknown_encoder = false;
};

/// What one step computes: by flags, or the release's default for the GPU.
memory::VllmBatch vllm_batch_of(const Question& question);

/// Weights and buffers of the fullest stage, into `row`: by formula, or where none is known an even share.
Status add_rank_weights(const Question& question, const VllmRanks& ranks, Row& row);

/// Weights go into `row`. Errors: kUsage when neither a GPU nor the cache's size is given; those of the
/// weights' formulas.
Result<VllmMemory> vllm_memory(const Question& question, const memory::VllmRules& rules,
                               const VllmRanks& ranks, Row& row);

/// Parts, bands and findings of the row whose cache is settled.
void finish_vllm_row(const Question& question, const VllmMemory& memory, const VllmRanks& ranks, Row& row);

}  // namespace plimsoll::plan
