// SPDX-License-Identifier: Apache-2.0
// Which engines and versions are known, and which one does NAME@VERSION mean?
// Knows names only; what a version does with memory stands in the memory room. Constants; any thread may
// call.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/finding.h"
#include "base/result.h"

namespace plimsoll::facts {

enum class EngineName { kPlimsoll, kAny, kVllm, kSglang, kLlamaCpp };
/// plimsoll any vllm sglang llama.cpp
std::string_view to_string(EngineName name);

struct EngineChoice {
  EngineName name = EngineName::kPlimsoll;
  std::string version;      // the known version that is used; empty where there is none
  std::string asked;        // as written behind the @; may be empty
  bool is_default = false;  // nobody named an engine
  Findings findings;        // VERSION_UNKNOWN when `version` is not what was asked
};

/// The leading "1.2.3" of a version as up to four numbers, which compare as releases do; empty when it does
/// not start so.
std::vector<int> release_numbers(std::string_view version);

/// Reads `vllm`, `vllm@0.33.0`, `vllm@0.23.1rc1.dev1201+gabc`. A development or rc version counts as the
/// release it precedes; an unknown one becomes the newest older one known (the oldest known where none is
/// older), with a finding; one without tags (0.1.devN) and one that cannot be read become the newest, with a
/// finding. Errors: kUsage for an unknown engine name, listing the known ones.
Result<EngineChoice> parse_engine(std::string_view text);

}  // namespace plimsoll::facts
