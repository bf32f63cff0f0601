// SPDX-License-Identifier: Apache-2.0
// By which rules does an engine, in this version, divide memory?
// One struct per engine filled from one table by version: formulas read its fields and compare no versions.
// Constants; any thread may call.
#pragma once

#include "base/units.h"
#include "facts/engines.h"

namespace plimsoll::memory {

/// Which formulas a row's fields belong to.
enum class Accounting {
  kEmbedded,  // this program's engine: docs/formulas/embedded_engine.md
  kVllm,      // docs/formulas/vllm_kv_cache.md, by release: vllm_rules.h
  kSglang,    // docs/formulas/sglang.md
  kLlamaCpp,  // docs/formulas/llama_cpp.md
  kSimple,    // no engine: docs/formulas/simple_accounting.md
};

struct EngineRules {
  facts::EngineName engine = facts::EngineName::kPlimsoll;
  Accounting accounting = Accounting::kEmbedded;
  double memory_utilization = 0.92;  // share of the memory that may be used when no flag says otherwise
  Bytes reserve_per_gpu = {};        // kSimple: activations, graphs and the rest, assumed
                                     // kLlamaCpp: what --fit leaves free on each device
  Bytes process_base = {};           // kEmbedded: program, libraries, tokenizer and heap, assumed
  Bytes default_pool_limit = {};     // kEmbedded: the pool's size unless one request or a flag needs more
  int block_size = 16;               // tokens per KV block when no flag says otherwise
};

/// The rules of a version.
EngineRules rules_for(const facts::EngineChoice& choice);

}  // namespace plimsoll::memory
