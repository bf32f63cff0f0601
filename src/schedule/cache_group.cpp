// SPDX-License-Identifier: Apache-2.0
#include "schedule/cache_group.h"

#include <algorithm>

#include "base/division.h"

namespace plimsoll::schedule {
namespace {

template <class... Handlers>
struct Kinds : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Kinds(Handlers...) -> Kinds<Handlers...>;

}  // namespace

std::int64_t blocks_for(std::int64_t tokens, int block_size) {
  return divided_up(tokens, block_size);
}

bool is_per_token(const CacheGroup& group) {
  return std::visit(Kinds{[](const GrowingCache&) { return true; }, [](const WindowedCache&) { return true; },
                          [](const StateCache&) { return false; }},
                    group);
}

bool needs_all(const CacheGroup& group) {
  return std::visit(
      Kinds{[](const GrowingCache&) { return true; }, [](const WindowedCache&) { return false; },
            [](const StateCache&) { return false; }},
      group);
}

std::int64_t first_kept(const CacheGroup& group, std::int64_t num_computed, int block_size) {
  return std::visit(Kinds{[](const GrowingCache&) { return std::int64_t{0}; },
                          [&](const WindowedCache& windowed) {
                            return std::max<std::int64_t>(num_computed - windowed.window + 1, 0) / block_size;
                          },
                          [](const StateCache&) { return std::int64_t{0}; }},
                    group);
}

std::int64_t most_held(const CacheGroup& group, std::int64_t tokens, int chunk, int block_size) {
  const std::int64_t all = blocks_for(tokens, block_size);
  return std::visit(Kinds{[&](const GrowingCache&) { return all; },
                          [&](const WindowedCache& windowed) {
                            if (windowed.window > tokens) return all;  // and nothing below overflows
                            return std::min(all, blocks_for(windowed.window - 1 + chunk, block_size) + 1);
                          },
                          [](const StateCache&) { return std::int64_t{1}; }},
                    group);
}

std::int64_t most_held(std::span<const CacheGroup> groups, std::int64_t tokens, int chunk, int block_size) {
  std::int64_t sum = 0;
  for (const CacheGroup& group : groups) {
    const std::int64_t more = most_held(group, tokens, chunk, block_size);
    sum = more > INT64_MAX - sum ? INT64_MAX : sum + more;
  }
  return sum;
}

}  // namespace plimsoll::schedule
