// SPDX-License-Identifier: Apache-2.0
// One split of attention for any V (vec_*.h); meanings and shapes are in attention.h. Keys are widened and
// turned, so that a lane is a position: a score is one sum over rising dimensions, and an output one over
// rising positions, each step a fused multiply-add, in every shape of tile. Static throughout.
#pragma once

#include "kernels/attention.h"
#include "kernels/attention_split.h"
#include "kernels/simd_attention_forms.h"
#include "kernels/simd_exponential.h"

namespace plimsoll::kernels {

static constexpr float kLaneNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// The keys of one vector of positions. rows: [kLanes], out: [head_dim, kAttentionBlock], its columns
template <class V, class Form>
static void turn_keys(const Byte* const* rows, std::int64_t head_dim, float* out) {
  typename V::F lanes[V::kLanes];
  std::int64_t d = 0;
  if constexpr (Form::kIsPairs)
    for (; d + 2 * V::kLanes <= head_dim; d += 2 * V::kLanes) {
      for (int i = 0; i < V::kLanes; ++i) lanes[i] = V::load(reinterpret_cast<const float*>(rows[i] + 2 * d));
      V::transpose(lanes);
      for (int i = 0; i < V::kLanes; ++i) {
        V::store(out + (d + 2 * i) * kAttentionBlock, V::low_bf16(lanes[i]));
        V::store(out + (d + 2 * i + 1) * kAttentionBlock, V::high_bf16(lanes[i]));
      }
    }
  for (; d < head_dim; d += V::kLanes) {
    const std::int64_t n = head_dim - d < V::kLanes ? head_dim - d : V::kLanes;
    for (int i = 0; i < V::kLanes; ++i) lanes[i] = Form::template load<V>(rows[i], d, n);
    V::transpose(lanes);
    for (int i = 0; i < n; ++i) V::store(out + (d + i) * kAttentionBlock, lanes[i]);
  }
}

/// Products of kQueries queries and kVectors vectors of positions.
/// keys: [head_dim, kAttentionBlock], scores: [kQueries, kAttentionSplit]
template <class V, int kQueries, int kVectors>
static void score_tile(const AttentionQuery* queries, std::int64_t head_dim, const float* keys,
                       float* scores) {
  typename V::F sums[kQueries][kVectors];
  for (auto& row : sums)
    for (auto& sum : row) sum = V::zero();
  for (std::int64_t d = 0; d < head_dim; ++d, keys += kAttentionBlock) {
    if constexpr (kQueries < kVectors) {
      typename V::F inputs[kQueries];
      for (int q = 0; q < kQueries; ++q) inputs[q] = V::set1(queries[q].query[d]);
      for (int v = 0; v < kVectors; ++v) {
        const auto key = V::load(keys + v * V::kLanes);
        for (int q = 0; q < kQueries; ++q) sums[q][v] = V::fma(inputs[q], key, sums[q][v]);
      }
    } else {
      typename V::F key[kVectors];
      for (int v = 0; v < kVectors; ++v) key[v] = V::load(keys + v * V::kLanes);
      for (int q = 0; q < kQueries; ++q) {
        const auto input = V::set1(queries[q].query[d]);
        for (int v = 0; v < kVectors; ++v) sums[q][v] = V::fma(input, key[v], sums[q][v]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q)
    for (int v = 0; v < kVectors; ++v) V::store(scores + q * kAttentionSplit + v * V::kLanes, sums[q][v]);
}

/// Queries that are multiplied at once, at most; with fewer of them, more vectors beside each other.
template <class V>
static constexpr int kQueriesAtOnce = V::kAttentionSums / 2;

template <class V, int kQueries, int kMost>
static constexpr int vectors_beside() {
  return kQueries * 4 <= V::kAttentionSums && kMost >= 4 ? 4 : 2;
}

template <class V, int kQueries = kQueriesAtOnce<V>>
static void score_block(int num_queries, const AttentionQuery* queries, std::int64_t head_dim,
                        const float* keys, float* scores) {
  constexpr int kVectors = vectors_beside<V, kQueries, kAttentionBlock / V::kLanes>();
  if (num_queries == kQueries) {
    for (int at = 0; at < kAttentionBlock; at += kVectors * V::kLanes)
      score_tile<V, kQueries, kVectors>(queries, head_dim, keys + at, scores + at);
    return;
  }
  if constexpr (kQueries > 1) score_block<V, kQueries - 1>(num_queries, queries, head_dim, keys, scores);
}

/// use(q, n): queries in groups that are multiplied at once.
template <class V, class Use>
static PLIMSOLL_INLINE void for_groups(int num_queries, Use use) {
  for (int q = 0; q < num_queries; q += kQueriesAtOnce<V>)
    use(q, num_queries - q < kQueriesAtOnce<V> ? num_queries - q : kQueriesAtOnce<V>);
}

/// All products of a split. buffer: [head_dim, kAttentionBlock], scores: [queries, kAttentionSplit]
template <class V, class Form>
static void score_split(const SplitOfTile& split, float* buffer, float* scores) {
  const KeyValues& cached = split.tile.cached;
  const auto num_queries = static_cast<int>(split.tile.queries.size());
  for (int at = split.begin / kAttentionBlock * kAttentionBlock; at < split.end; at += kAttentionBlock) {
    const int end = at + kAttentionBlock < split.end ? at + kAttentionBlock : split.end;
    const int ahead = end + kAttentionBlock < split.end ? end + kAttentionBlock : split.end;
    prefetch(split.keys, end, ahead, cached.key_bytes);
    for (int j = at; j < at + kAttentionBlock; j += V::kLanes) {
      prefetch(split.values, j, j + V::kLanes, cached.value_bytes);
      turn_keys<V, Form>(split.keys + j, cached.head_dim, buffer + (j - at));
    }
    for_groups<V>(num_queries, [&](int q, int n) {
      const SeenRange seen = seen_by(split, q, n, at, end);
      if (seen.begin < seen.end)
        score_block<V>(n, split.tile.queries.data() + q, cached.head_dim, buffer,
                       scores + q * kAttentionSplit + at);
    });
  }
}

/// A score from the product of query and key.
template <class V>
static PLIMSOLL_INLINE typename V::F score_of(const AttentionTile& tile, const AttentionQuery& query,
                                              typename V::F product, std::int64_t position) {
  typename V::F score = V::mul(product, V::set1(tile.scale));
  if (query.slope != 0.0f) {
    const auto distance =
        V::add(V::set1(static_cast<float>(position + 1 - query.end)), V::load(kLaneNumbers));
    score = V::fma(V::set1(query.slope), distance, score);
  }
  if (tile.soft_cap > 0.0f) {  // tanh(x) = 1 - 2 / (e^2x + 1)
    const auto growth = exponential<V>(V::mul(score, V::set1(2.0f / tile.soft_cap)));
    const auto half = V::div(V::set1(2.0f), V::add(growth, V::set1(1.0f)));
    score = V::mul(V::set1(tile.soft_cap), V::sub(V::set1(1.0f), half));
  }
  return score;
}

/// Products of one query become the weights of its values; part[0, 2) their maximum and sum.
/// key_factors, value_factors: [kAttentionSplit], or null for 1. products: [kAttentionSplit]
template <class V>
static void weigh(const SplitOfTile& split, int q, const float* key_factors, const float* value_factors,
                  float* products, float* part) {
  const AttentionQuery& query = split.tile.queries[static_cast<std::size_t>(q)];
  const int first = split.first[q], last = split.last[q], begin = first / V::kLanes * V::kLanes;
  auto largest = V::set1(kNothingSeen);
  for (int i = begin; i < last; i += V::kLanes) {
    auto product = V::load(products + i);
    if (key_factors) product = V::mul(product, V::load(key_factors + i));
    auto score = score_of<V>(split.tile, query, product, split.start + i);
    V::store(products + i, score);
    if (i < first || i + V::kLanes > last) {
      for (int lane = i; lane < i + V::kLanes; ++lane)
        if (lane < first || lane >= last) products[lane] = -__builtin_inff();
      score = V::load(products + i);
    }
    largest = V::max(largest, score);
  }
  const float found = V::largest(largest), maximum = found > kNothingSeen ? found : kNothingSeen;
  const auto shift = V::set1(maximum);
  auto sum = V::zero();
  for (int i = begin; i < last; i += V::kLanes) {
    const auto weight = falling_exponential<V>(V::sub(V::load(products + i), shift));
    sum = V::add(sum, weight);
    V::store(products + i, value_factors ? V::mul(weight, V::load(value_factors + i)) : weight);
  }
  part[0] = maximum;
  part[1] = V::sum(sum);
}

/// kVectors vectors of values, weighed, to the sums of kQueries queries.
/// weights: [kQueries, kAttentionSplit], sums: [kQueries, part_stride]
template <class V, class Form, int kQueries, int kVectors>
static void add_values(const Byte* const* rows, std::int64_t column, int begin, int end, const float* weights,
                       float* out, std::int64_t part_stride) {
  typename V::F sums[kQueries][kVectors];
  for (int q = 0; q < kQueries; ++q)
    for (int v = 0; v < kVectors; ++v) sums[q][v] = V::load(out + q * part_stride + v * V::kLanes);
  for (int i = begin; i < end; ++i) {
    if constexpr (kQueries < kVectors) {
      typename V::F factors[kQueries];
      for (int q = 0; q < kQueries; ++q) factors[q] = V::set1(weights[q * kAttentionSplit + i]);
      for (int v = 0; v < kVectors; ++v) {
        const auto value = Form::template load<V>(rows[i], column + v * V::kLanes);
        for (int q = 0; q < kQueries; ++q) sums[q][v] = V::fma(factors[q], value, sums[q][v]);
      }
    } else {
      typename V::F values[kVectors];
      for (int v = 0; v < kVectors; ++v) values[v] = Form::template load<V>(rows[i], column + v * V::kLanes);
      for (int q = 0; q < kQueries; ++q) {
        const auto factor = V::set1(weights[q * kAttentionSplit + i]);
        for (int v = 0; v < kVectors; ++v) sums[q][v] = V::fma(factor, values[v], sums[q][v]);
      }
    }
  }
  for (int q = 0; q < kQueries; ++q)
    for (int v = 0; v < kVectors; ++v) V::store(out + q * part_stride + v * V::kLanes, sums[q][v]);
}

/// All columns. out: [queries, part_stride]
template <class V, class Form, int kQueries = kQueriesAtOnce<V>>
static void add_columns(int num_queries, const Byte* const* rows, std::int64_t columns, int begin, int end,
                        const float* weights, float* out, std::int64_t part_stride) {
  if (num_queries == kQueries) {
    constexpr int kVectors = vectors_beside<V, kQueries, 4>();
    std::int64_t at = 0;
    for (; at + kVectors * V::kLanes <= columns; at += kVectors * V::kLanes)
      add_values<V, Form, kQueries, kVectors>(rows, at, begin, end, weights, out + at, part_stride);
    for (; at < columns; at += V::kLanes)
      add_values<V, Form, kQueries, 1>(rows, at, begin, end, weights, out + at, part_stride);
    return;
  }
  if constexpr (kQueries > 1)
    add_columns<V, Form, kQueries - 1>(num_queries, rows, columns, begin, end, weights, out, part_stride);
}

/// Some queries over positions [begin, end), of which each sees its own: the ones that all see together, what
/// is left before and behind them one query at a time.
template <class V, class Form>
static void add_seen(const SplitOfTile& split, int q, int n, const Byte* const* rows, std::int64_t columns,
                     int begin, int end, const float* weights, float* parts) {
  const std::int64_t stride = attention_part(split.tile.cached.value_dim);
  const SeenRange seen = seen_by(split, q, n, begin, end);
  const bool is_shared = seen.common_begin < seen.common_end;
  const auto alone = [&](int from, int to) {
    for (int i = q; i < q + n; ++i) {
      const int first = split.first[i] > from ? split.first[i] : from;
      const int last = split.last[i] < to ? split.last[i] : to;
      if (first < last)
        add_columns<V, Form, 1>(1, rows, columns, first, last, weights + i * kAttentionSplit,
                                parts + i * stride + 16, stride);
    }
  };
  alone(seen.begin, is_shared ? seen.common_begin : seen.end);
  if (!is_shared) return;
  add_columns<V, Form>(n, rows, columns, seen.common_begin, seen.common_end, weights + q * kAttentionSplit,
                       parts + q * stride + 16, stride);
  alone(seen.common_end, seen.end);
}

/// All values of a split, weighed. buffer: [kAttentionBlock, columns], columns filled up to whole vectors.
template <class V, class Form>
static void add_split(const SplitOfTile& split, const float* weights, float* buffer, float* parts) {
  const KeyValues& cached = split.tile.cached;
  const auto num_queries = static_cast<int>(split.tile.queries.size());
  const bool is_direct = num_queries <= kQueriesAtOnce<V> && cached.value_dim % V::kLanes == 0;
  const std::int64_t columns = (cached.value_dim + V::kLanes - 1) / V::kLanes * V::kLanes;
  const Byte* rows[kAttentionSplit];
  for (int at = split.begin; at < split.end; at += kAttentionBlock) {
    const int end = at + kAttentionBlock < split.end ? at + kAttentionBlock : split.end;
    const int ahead = end == split.end ? split.num_next : end - split.begin;
    prefetch(split.next_keys, at - split.begin, ahead < split.num_next ? ahead : split.num_next,
             cached.key_bytes);
    if (is_direct) {
      add_seen<V, Form>(split, 0, num_queries, split.values, columns, at, end, weights, parts);
      continue;
    }
    for (int i = at; i < end; ++i) {
      float* const row = buffer + (i - at) * columns;
      rows[i] = reinterpret_cast<const Byte*>(row);
      for (std::int64_t d = 0; d < columns; d += V::kLanes)
        V::store(row + d, Form::template load<V>(split.values[i], d, cached.value_dim - d));
    }
    for_groups<V>(num_queries, [&](int q, int n) {
      add_seen<V, FormF32>(split, q, n, rows, columns, at, end, weights, parts);
    });
  }
}

template <class V, class Form>
static void attend_split_as(const AttentionTile& tile, std::int64_t split_number, float* parts,
                            float* scratch) {
  SplitOfTile split(tile, split_number);
  find_split(split);
  const std::int64_t stride = attention_part(tile.cached.value_dim);
  const auto num_queries = static_cast<int>(tile.queries.size());
  for (std::int64_t i = 0; i < num_queries * stride; i += V::kLanes) V::store(parts + i, V::zero());
  float* const scores = scratch;
  float* const buffer = scratch + kAttentionQueries * kAttentionSplit;
  float key_factors[kAttentionSplit], value_factors[kAttentionSplit];
  if (split.begin < split.end) {
    if constexpr (Form::kHasFactors)
      for (int i = split.begin; i < split.end; ++i) {
        key_factors[i] = Form::factor(split.keys[i], tile.cached.head_dim);
        value_factors[i] = Form::factor(split.values[i], tile.cached.value_dim);
      }
    score_split<V, Form>(split, buffer, scores);
  }
  for (int q = 0; q < num_queries; ++q)
    if (split.first[q] < split.last[q])
      weigh<V>(split, q, Form::kHasFactors ? key_factors : nullptr,
               Form::kHasFactors ? value_factors : nullptr, scores + q * kAttentionSplit, parts + q * stride);
    else
      parts[q * stride] = kNothingSeen;
  if (split.begin < split.end) add_split<V, Form>(split, scores, buffer, parts);
}

template <class V>
static void simd_attend_split(const AttentionTile& tile, std::int64_t split, float* parts, float* scratch) {
  for_form(tile.cached.dtype, [&](auto form) __attribute__((always_inline)) {
    attend_split_as<V, decltype(form)>(tile, split, parts, scratch);
  });
}

template <class V>
static void simd_merge_parts(const float* part, std::int64_t value_dim, float* into) {
  if (has_seen_nothing(part)) return;
  const std::int64_t n = attention_part(value_dim);
  if (has_seen_nothing(into)) {
    for (std::int64_t i = 0; i < n; i += V::kLanes) V::store(into + i, V::load(part + i));
    return;
  }
  const float maximum = part[0] > into[0] ? part[0] : into[0];
  const auto kept = falling_exponential<V>(V::set1(into[0] - maximum));
  const auto added = falling_exponential<V>(V::set1(part[0] - maximum));
  // The divisors stand in the first vector, and before them the maximum.
  for (std::int64_t i = 0; i < n; i += V::kLanes)
    V::store(into + i, V::fma(V::load(part + i), added, V::mul(V::load(into + i), kept)));
  into[0] = maximum;
}

template <class V>
static void simd_finish_part(const float* part, const float* sink, std::int64_t value_dim, float* out) {
  typename V::F factor = V::set1(1.0f), divisor = V::set1(part[1]);
  if (sink) {
    const float maximum = *sink > part[0] ? *sink : part[0];
    factor = falling_exponential<V>(V::set1(part[0] - maximum));
    divisor = V::fma(divisor, factor, falling_exponential<V>(V::set1(*sink - maximum)));
  }
  factor = V::div(factor, divisor);
  std::int64_t i = 0;
  for (; i + V::kLanes <= value_dim; i += V::kLanes)
    V::store(out + i, V::mul(V::load(part + 16 + i), factor));
  if (i < value_dim) V::store_first(out + i, value_dim - i, V::mul(V::load(part + 16 + i), factor));
}

}  // namespace plimsoll::kernels
