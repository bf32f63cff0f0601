// SPDX-License-Identifier: Apache-2.0
#include "memory/engine_rules.h"

#include <string>

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
    {.engine = EngineName::kLlamaCpp,
     .accounting = Accounting::kLlamaCpp,
     .memory_utilization = 1.0,
     .reserve_per_gpu = Bytes(kGiB),
     .process_base = Bytes(0),
     .default_pool_limit = Bytes(0),
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

Result<EngineRules> rules_for(const facts::EngineChoice& choice) {
  std::string modelled;
  for (const EngineRules& rules : kRules) {
    if (rules.engine == choice.name) {
      EngineRules chosen = rules;
      if (rules.accounting == Accounting::kVllm)
        chosen.memory_utilization = vllm_rules(choice.version).memory_utilization;
      return chosen;
    }
    modelled += (modelled.empty() ? "" : ", ") + std::string(to_string(rules.engine));
  }
  return fail(ErrorCode::kUnsupported,
              "the memory of " + std::string(to_string(choice.name)) +
                  " is not modelled yet; engines that are: " + modelled,
              "--engine",
              "use --engine plimsoll for this program's own engine, --engine any for the formula");
}

}  // namespace plimsoll::memory
