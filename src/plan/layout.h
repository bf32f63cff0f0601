// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: can this model be split over so many GPUs by tensor parallelism, and what is copied?
// Pure; plain values.
#pragma once

#include <optional>

#include "base/finding.h"
#include "model/model.h"

namespace plimsoll::plan {

/// TP_DIVISIBILITY when heads cannot be split evenly, with the counts that can be; nothing when they can.
/// Query heads must divide by the GPUs; KV heads must divide by them, or be divided by them.
std::optional<Finding> layout_fault(const model::ModelSpec& spec, std::int64_t gpus);

/// KV_REPLICATED when there are more GPUs than KV heads: each head is then kept by several.
std::optional<Finding> kv_replication(const model::ModelSpec& spec, std::int64_t gpus);

}  // namespace plimsoll::plan
