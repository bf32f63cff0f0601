// SPDX-License-Identifier: Apache-2.0
// How many blocks does each kind of cache group need? The only place that tells the kinds apart by what they
// keep. Pure functions. Source: docs/formulas/schedule.md, section 1.
#pragma once

#include <cstdint>
#include <span>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

std::int64_t blocks_for(std::int64_t tokens, int block_size);

/// True when the table has an entry for every block_size tokens, false when it has one entry in all.
bool is_per_token(const CacheGroup& group);

/// True when a prefix can only be read with all its blocks, from the first one on.
bool needs_all(const CacheGroup& group);

/// The first block that tokens from position `num_computed` on still read.
std::int64_t first_kept(const CacheGroup& group, std::int64_t num_computed, int block_size);

/// The most blocks that a sequence of `tokens` tokens holds at once when it is computed in chunks of at most
/// `chunk` tokens.
std::int64_t most_held(const CacheGroup& group, std::int64_t tokens, int chunk, int block_size);

/// The same of all groups together; INT64_MAX stands for all that is more.
std::int64_t most_held(std::span<const CacheGroup> groups, std::int64_t tokens, int chunk, int block_size);

}  // namespace plimsoll::schedule
