// SPDX-License-Identifier: Apache-2.0
// Plays a trace: the scheduler, the naive model of it, and an engine that keeps what each slot of each block
// contains. After every event all that docs/formulas/schedule.md promises is checked.
#pragma once

#include <cstdint>
#include <string>

#include "tests/schedule/trace.h"

namespace plimsoll::schedule {

struct Played {
  std::string failure;  // empty: every rule held
  std::int64_t steps = 0, preemptions = 0, hit_tokens = 0, copies = 0, evictions = 0, refusals = 0, forks = 0,
               slid_blocks = 0;
};

Played play(const Trace& trace);

}  // namespace plimsoll::schedule
