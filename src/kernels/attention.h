// SPDX-License-Identifier: Apache-2.0
// Attention of several queries over the keys and values of one head: where they lie, who sees which of them,
// and how the parts of a long text add up. Positions are cut at multiples of kAttentionSplit, whatever a
// query sees first; a split's part has a maximum and a sum of its own, and parts are merged in rising order.
// So a query's bits depend neither on the queries beside it nor on who computed which split. Values only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace plimsoll::kernels {

struct Kernels;

/// Positions of a split, and of those the ones whose keys or values are widened at once.
inline constexpr int kAttentionSplit = 128, kAttentionBlock = 32;
/// Splits of a span, which is what threads share a long text by.
inline constexpr int kAttentionSpan = 4;
/// Queries of a tile at most.
inline constexpr int kAttentionQueries = 32;

/// Keys and values of one head. Position p lies at p % block_size of block blocks[p / block_size], or, where
/// there is no table, p steps behind the first one.
struct KeyValues {
  DType dtype = DType::kBF16;       // f32, bf16, f8_e4m3, or i8 behind a scale in f32
  std::int64_t head_dim = 0;        // numbers of a key
  std::int64_t value_dim = 0;       // numbers of a value that count
  const std::byte* keys = nullptr;  // of block 0
  const std::byte* values = nullptr;
  std::int64_t key_bytes = 0, value_bytes = 0;  // from a position to the next
  const std::int32_t* blocks = nullptr;
  std::int64_t block_size = 1, block_bytes = 0;  // positions of a block; from a block to the next
};

struct AttentionQuery {
  const float* query = nullptr;     // [head_dim]
  float* out = nullptr;             // [value_dim]
  const float* sink = nullptr;      // one more score, of nothing; null: none
  std::int64_t first = 0, end = 0;  // positions it sees: [first, end)
  float slope = 0;                  // times the distance to the last one, added to a score: alibi
};

struct AttentionTile {
  KeyValues cached;
  float scale = 1;                          // of products
  float soft_cap = 0;                       // cap * tanh(score / cap); 0: none
  std::span<const AttentionQuery> queries;  // 1 to kAttentionQueries
};

/// Floats of a part: the sum of what one query attends to and, before it, its maximum and its divisor.
constexpr std::int64_t attention_part(std::int64_t value_dim) {
  return 16 + (value_dim + 15) / 16 * 16;
}

/// Floats that attend_span and attend need of the calling thread.
constexpr std::int64_t attention_scratch(std::int64_t head_dim, std::int64_t value_dim) {
  const std::int64_t widest = (head_dim > value_dim ? head_dim : value_dim) + 15;
  return kAttentionBlock * (widest / 16 * 16) +
         kAttentionQueries * (kAttentionSplit + 3 * attention_part(value_dim));
}

/// Numbers of spans, or of positions or splits: [first, end).
struct AttentionRange {
  std::int64_t first = 0, end = 0;
  std::int64_t count() const { return end - first; }
};
/// The spans in which positions lie.
AttentionRange attention_spans(AttentionRange positions);

/// A tile's parts of one span. parts: [queries, attention_part]; scratch: attention_scratch() floats.
void attend_span(const Kernels& kernels, const AttentionTile& tile, std::int64_t span, float* parts,
                 float* scratch);
/// The outputs from the parts of all spans, which are spent. parts: [spans, queries, attention_part]
void finish_spans(const Kernels& kernels, const AttentionTile& tile, std::int64_t num_spans, float* parts);
/// Both, by one thread. scratch: attention_scratch() floats.
void attend(const Kernels& kernels, const AttentionTile& tile, float* scratch);

}  // namespace plimsoll::kernels
