// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <algorithm>

#include "kernels/kernels.h"

namespace plimsoll::kernels {
namespace {

// Positions that any query sees.
AttentionRange positions_of(std::span<const AttentionQuery> queries) {
  AttentionRange seen{queries.front().first, queries.front().end};
  for (const AttentionQuery& query : queries)
    seen = {std::min(seen.first, query.first), std::max(seen.end, query.end)};
  return seen;
}

AttentionRange pieces_of(AttentionRange positions, std::int64_t size) {
  return {positions.first / size, (positions.end + size - 1) / size};
}

void merge(const Kernels& kernels, const AttentionTile& tile, const float* parts, float* into) {
  const std::int64_t dim = tile.cached.value_dim, stride = attention_part(dim);
  for (std::int64_t q = 0; q < std::ssize(tile.queries); ++q)
    kernels.merge_parts(parts + q * stride, dim, into + q * stride);
}

// Where attend_span and attend keep parts in the scratch, one set before another.
float* parts_in(const AttentionTile& tile, float* scratch, int set) {
  const std::int64_t dim = tile.cached.value_dim;
  return scratch + attention_scratch(tile.cached.head_dim, dim) -
         (set + 1) * kAttentionQueries * attention_part(dim);
}

}  // namespace

AttentionRange attention_spans(AttentionRange positions) {
  return pieces_of(positions, kAttentionSpan * kAttentionSplit);
}

void attend_span(const Kernels& kernels, const AttentionTile& tile, std::int64_t span, float* parts,
                 float* scratch) {
  const AttentionRange seen = pieces_of(positions_of(tile.queries), kAttentionSplit);
  const std::int64_t first = std::max(seen.first, span * kAttentionSpan);
  const std::int64_t end = std::min(seen.end, (span + 1) * kAttentionSpan);
  kernels.attend_split(tile, first, parts, scratch);
  float* const next = parts_in(tile, scratch, 0);
  for (std::int64_t split = first + 1; split < end; ++split) {
    kernels.attend_split(tile, split, next, scratch);
    merge(kernels, tile, next, parts);
  }
}

void finish_spans(const Kernels& kernels, const AttentionTile& tile, std::int64_t num_spans, float* parts) {
  const std::int64_t dim = tile.cached.value_dim, stride = attention_part(dim);
  const std::int64_t of_span = std::ssize(tile.queries) * stride;
  for (std::int64_t span = 1; span < num_spans; ++span) merge(kernels, tile, parts + span * of_span, parts);
  for (const AttentionQuery& query : tile.queries) {
    kernels.finish_part(parts, query.sink, dim, query.out);
    parts += stride;
  }
}

void attend(const Kernels& kernels, const AttentionTile& tile, float* scratch) {
  const AttentionRange spans = attention_spans(positions_of(tile.queries));
  float* const parts = parts_in(tile, scratch, 2);
  float* const next = parts_in(tile, scratch, 1);
  attend_span(kernels, tile, spans.first, parts, scratch);
  for (std::int64_t span = spans.first + 1; span < spans.end; ++span) {
    attend_span(kernels, tile, span, next, scratch);
    merge(kernels, tile, next, parts);
  }
  finish_spans(kernels, tile, 1, parts);
}

}  // namespace plimsoll::kernels
