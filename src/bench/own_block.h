// SPDX-License-Identifier: Apache-2.0
// What a reader needs to believe vLLM's block: a second one below it, and remarks. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/bench.h"

namespace plimsoll::bench {

/// The block "plimsoll", in the columns of vLLM's; docs/formulas/bench.md defines its rows.
std::string own_block(const RunResult& result);

/// One sentence for each thing that makes the figures doubtful; none for a run without such.
std::vector<std::string> remarks(const Summary& summary);

}  // namespace plimsoll::bench
