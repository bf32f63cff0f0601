// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: can this model be split over so many GPUs by tensor parallelism, and what is copied?
// Pure; plain values.
#pragma once

#include <optional>

#include "base/finding.h"
#include "facts/facts.h"
#include "model/model.h"

namespace plimsoll::plan {

/// TP_DIVISIBILITY when heads cannot be split evenly, with the counts that can be; nothing when they can.
/// Query heads must divide by the GPUs; KV heads must divide by them, or be divided by them.
std::optional<Finding> layout_fault(const model::ModelSpec& spec, std::int64_t gpus);

/// What else a layout splits besides heads.
struct Layout {
  int tensor = 1, pipeline = 1, data = 1, context = 1;
  bool is_expert_parallel = false;
};

/// PP_DIVISIBILITY for more stages than layers, EP_WITHOUT_EXPERTS, DCP_DIVISIBILITY where the copies of keys
/// that ranks hold cannot be shared out. Source: vLLM 0.32.0, ModelConfig.verify_with_parallel_config.
std::optional<Finding> parallel_fault(const model::ModelSpec& spec, const Layout& layout);

/// KV_DTYPE_UNSUPPORTED where no kernel keeps keys and values in 8 bit on that GPU; ATTENTION_UNSUPPORTED
/// where none computes the model's attention at all. Source: facts/attention_kernels.h.
std::optional<Finding> kernel_fault(const model::ModelSpec& spec, const facts::GpuFacts& gpu, bool is_fp8);

/// KV_REPLICATED when there are more GPUs than KV heads: each head is then kept by several.
std::optional<Finding> kv_replication(const model::ModelSpec& spec, std::int64_t gpus);

}  // namespace plimsoll::plan
