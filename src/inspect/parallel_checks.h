// SPDX-License-Identifier: Apache-2.0
// Over how many GPUs can one copy of this model be split? For each tensor-parallel size whether heads, KV
// heads, widths, quantization blocks and experts divide, as vLLM and SGLang ask it at start-up. Memory is the
// plan's question. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Everything that a tensor-parallel size must divide; absent counts are not known or not there.
struct Shards {
  struct Count {
    std::string what;  // "query heads"
    std::int64_t count = 0;
    std::int64_t multiple_of = 1;  // each rank's share must be a multiple of it (quantization blocks)
    bool is_expert = false;        // expert parallelism leaves it whole
  };
  std::vector<Count> counts;
  std::vector<std::int64_t> kv_heads;  // distinct; may also divide the size (replication)
  std::int64_t kv_head_multiple = 1;   // heads that a rank must hold for whole quantization blocks
  bool has_latent = false;             // MLA: every rank keeps the whole latent
  std::int64_t experts = 0;
};

/// What the spec, or else the config, says of this model; nothing when even the heads are not known.
std::optional<Shards> shards_of(const Subject& subject, const Report& report);

/// One row for a size. Source: docs/formulas/parallel.md.
ParallelRow parallel_row(const Shards& shards, int tensor_parallel);

/// Fills report.parallel for sizes 1 to 32.
void check_parallel(const Subject& subject, Report& report);

/// The document's array `parallel`; null when it is not known.
Json parallel_json(const Report& report);

}  // namespace plimsoll::inspect
