// SPDX-License-Identifier: Apache-2.0
#include "memory/engine_rules.h"

#include "base/result.h"
#include "memory/vllm_rules.h"

namespace plimsoll::memory {
namespace {

using facts::EngineName;

// Newest first within an engine. 0.92 is vLLM's default share, which both accountings follow.
constexpr EngineRules kRules[] = {
    {.engine = EngineName::kPlimsoll,
     .accounting = Accounting::kEmbedded,
     .memory_utilization = 0.92,
     .reserve_per_gpu = Bytes(0),
     .process_base = Bytes(64 * kMiB),
     .default_pool_limit = Bytes(4 * kGiB),
     .block_size = 16},
    {.engine = EngineName::kVllm,
     .accounting = Accounting::kVllm,
     .memory_utilization = 0.92,
     .reserve_per_gpu = Bytes(0),
     .process_base = Bytes(0),
     .default_pool_limit = Bytes(0),
     .block_size = 16},
    {.engine = EngineName::kSglang,
     .accounting = Accounting::kSglang,
     .memory_utilization = 0,  // hangs on the GPU: sglang_pool.h
     .block_size = 1},
    {.engine = EngineName::kLlamaCpp,
     .accounting = Accounting::kLlamaCpp,
     .memory_utilization = 1.0,
     .reserve_per_gpu = Bytes(kGiB),
     .block_size = 1},
    {.engine = EngineName::kAny,
     .accounting = Accounting::kSimple,
     .memory_utilization = 0.92,
     .reserve_per_gpu = Bytes(2 * kGB),
     .process_base = Bytes(0),
     .default_pool_limit = Bytes(0),
     .block_size = 1},
};

}  // namespace

EngineRules rules_for(const facts::EngineChoice& choice) {
  for (const EngineRules& rules : kRules) {
    if (rules.engine != choice.name) continue;
    EngineRules chosen = rules;
    if (rules.accounting == Accounting::kVllm)
      chosen.memory_utilization = vllm_rules(choice.version).memory_utilization;
    return chosen;
  }
  check_failed("rules", __FILE__, __LINE__, "every engine has a row");
}

}  // namespace plimsoll::memory
