// SPDX-License-Identifier: Apache-2.0
// Where one split of a tile of attention lies, and who sees what of it. Shared by the forms for wide
// instruction sets, so all of it is `static` (stored.h). Points into the caller's cache.
#pragma once

#include "kernels/attention.h"
#include "kernels/simd_codes.h"

namespace plimsoll::kernels {

static constexpr float kNothingSeen = -__FLT_MAX__;  // the maximum of no score

/// Where a tile's split lies, and what of it is seen. Positions count from the split's first.
struct SplitOfTile {
  SplitOfTile(const AttentionTile& its_tile, std::int64_t split)
      : tile(its_tile), start(split * kAttentionSplit) {}

  const AttentionTile& tile;
  std::int64_t start;                 // the split's first position
  int begin = 0, end = 0;             // what any of the queries sees
  int first[kAttentionQueries] = {};  // what each one sees
  int last[kAttentionQueries] = {};   // behind it
  const Byte* keys[kAttentionSplit];  // from begin to end, and copies of the nearest to the borders of blocks
  const Byte* values[kAttentionSplit];
  const Byte* next_keys[kAttentionSplit];  // of the next split, where any of the queries sees it
  int num_next = 0;
};

static inline int within_split(std::int64_t position, std::int64_t start) {
  const std::int64_t at = position - start;
  return static_cast<int>(at < 0 ? 0 : at > kAttentionSplit ? kAttentionSplit : at);
}

/// rows[i] for positions start + i, i in [begin, end).
static inline void find_rows(const KeyValues& cached, std::int64_t start, int begin, int end,
                             const Byte** keys, const Byte** values) {
  const auto* const key = reinterpret_cast<const Byte*>(cached.keys);
  const auto* const value = reinterpret_cast<const Byte*>(cached.values);
  std::int64_t block = (start + begin) / cached.block_size, slot = (start + begin) % cached.block_size;
  for (int i = begin; i < end; ++i) {
    std::int64_t at = 0;
    if (cached.blocks)
      at = cached.blocks[block] * cached.block_bytes;
    else
      slot = start + i;
    keys[i] = key + at + slot * cached.key_bytes;
    if (values) values[i] = value + at + slot * cached.value_bytes;
    if (++slot == cached.block_size) {
      slot = 0;
      ++block;
    }
  }
}

static inline void find_split(SplitOfTile& found) {
  found.begin = kAttentionSplit;
  for (std::size_t q = 0; q < found.tile.queries.size(); ++q) {
    const AttentionQuery& query = found.tile.queries[q];
    found.first[q] = within_split(query.first, found.start);
    found.last[q] = within_split(query.end, found.start);
    if (found.first[q] >= found.last[q]) continue;
    found.begin = found.first[q] < found.begin ? found.first[q] : found.begin;
    found.end = found.last[q] > found.end ? found.last[q] : found.end;
  }
  if (found.begin >= found.end) return;
  find_rows(found.tile.cached, found.start, found.begin, found.end, found.keys, found.values);
  for (int i = found.begin / kAttentionBlock * kAttentionBlock; i < found.begin; ++i) {
    found.keys[i] = found.keys[found.begin];
    found.values[i] = found.values[found.begin];
  }
  for (int i = found.end; i % kAttentionBlock != 0; ++i) {
    found.keys[i] = found.keys[found.end - 1];
    found.values[i] = found.values[found.end - 1];
  }
  for (const AttentionQuery& query : found.tile.queries) {
    const int seen = within_split(query.end, found.start + kAttentionSplit);
    found.num_next = seen > found.num_next ? seen : found.num_next;
  }
  if (found.num_next > 0)
    find_rows(found.tile.cached, found.start + kAttentionSplit, 0, found.num_next, found.next_keys, nullptr);
}

static inline bool has_seen_nothing(const float* part) {
  return part[0] == kNothingSeen && part[1] == 0.0f;
}

/// What any, and what all, of some queries see of positions [begin, end); empty where from >= to.
struct SeenRange {
  int begin, end, common_begin, common_end;
};
static inline SeenRange seen_by(const SplitOfTile& split, int q, int n, int begin, int end) {
  SeenRange seen{end, begin, begin, end};
  for (int i = q; i < q + n; ++i) {
    const int first = split.first[i] > begin ? split.first[i] : begin;
    const int last = split.last[i] < end ? split.last[i] : end;
    if (first < last) {
      seen.begin = first < seen.begin ? first : seen.begin;
      seen.end = last > seen.end ? last : seen.end;
    }
    seen.common_begin = first > seen.common_begin ? first : seen.common_begin;
    seen.common_end = last < seen.common_end ? last : seen.common_end;
  }
  return seen;
}

/// Rows [begin, end) into the second-level cache: blocks of a cache lie far apart, and no processor foresees
/// the next one.
static PLIMSOLL_INLINE void prefetch(const Byte* const* rows, int begin, int end, std::int64_t bytes) {
  for (int row = begin; row < end; ++row)
    for (std::int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(rows[row] + i, 0, 2);
}

}  // namespace plimsoll::kernels
