// SPDX-License-Identifier: Apache-2.0
// What does vLLM take of a GPU beside weights and cache, and what is left for the cache?
// The budget is exact; batches follow the release's defaults; what a forward pass, the sampler, graphs and
// libraries take is a formula with fitted constants (facts/vllm_runtime.h) and a band around it. Pure; any
// thread may call. Source: docs/formulas/vllm_budget.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "base/units.h"
#include "facts/vllm_runtime.h"
#include "memory/vllm_rules.h"
#include "model/model.h"

namespace plimsoll::memory {

/// How much one step computes.
struct VllmBatch {
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
};

/// The GPU as the release's defaults see it.
struct VllmDevice {
  Bytes memory;
  std::string_view name;  // H100-SXM5-80GB; empty for a bare size
};

/// What the server takes where no flag says otherwise. `tokens` and `sequences`: what flags say.
VllmBatch vllm_batch(const VllmRules& rules, const VllmDevice& device, std::int64_t max_model_len,
                     std::optional<std::int64_t> tokens, std::optional<std::int64_t> sequences);

struct VllmRuntimeSettings {
  VllmBatch batch;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  int data_parallel = 1;       // copies of the model; they share their experts
  DType dtype = DType::kBF16;  // of activations
  bool is_eager = false;       // --enforce-eager: no graphs
  bool is_expert_parallel = false;
  bool has_drafts = false;
};

/// Of one GPU. The sampler runs after the forward pass: of the two the larger one counts.
struct VllmRuntime {
  Bytes forward;  // of a full batch through the widest layer
  Bytes sampler;
  Bytes drafts;
  Bytes non_torch;
  Bytes graphs;  // as far as the budget holds them
  Bytes band;    // half of the band that holds nine of ten recorded starts
  Bytes total() const { return std::max(forward, sampler) + drafts + non_torch + graphs; }
};

VllmRuntime vllm_runtime(const model::ModelSpec& spec, const VllmRuntimeSettings& settings,
                         const VllmRules& rules, const facts::VllmRuntime& fit);

/// The share of a GPU's memory that the release takes for itself. Rounding is the release's.
Bytes vllm_budget(const VllmRules& rules, Bytes memory, double utilization);

/// The largest share in whole hundredths that starts with so much free; 0 where none does.
double vllm_largest_utilization(const VllmRules& rules, Bytes memory, Bytes free);

}  // namespace plimsoll::memory
