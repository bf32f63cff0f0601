// SPDX-License-Identifier: Apache-2.0
// Small pools, requests and steps for the tests of the schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

/// Blocks of 4 tokens, 8 seats, 16 tokens per step.
Options small_pool(std::int64_t num_blocks);
std::vector<TokenId> counting(TokenId first, int count);
Request asked(SequenceId id, std::vector<TokenId> prompt, std::int64_t final_tokens);
/// Expects that the request is taken.
void add(Scheduler& scheduler, SequenceId id, std::vector<TokenId> prompt, std::int64_t final_tokens,
         int priority = 0, const std::string& salt = "");
/// One step in which every last chunk yields the token 900.
Step run_step(Scheduler& scheduler);
std::vector<SequenceId> ids(const Step& step);

}  // namespace plimsoll::schedule
