// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

constexpr float kNothingSeen = std::numeric_limits<float>::lowest();  // the maximum of no score

std::int64_t offset_of(const KeyValues& cached, std::int64_t position, std::int64_t stride) {
  if (!cached.blocks) return position * stride;
  return cached.blocks[position / cached.block_size] * cached.block_bytes +
         position % cached.block_size * stride;
}

/// The first n numbers of a vector. out: [n]
void widen(DType dtype, const std::byte* at, std::int64_t n, float* out) {
  const float factor = dtype == DType::kI8 ? load_as<float>(at) : 1.0f;
  const float* const values = code_values(dtype);
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(at) + (dtype == DType::kI8 ? 4 : 0);
  for (std::int64_t i = 0; i < n; ++i)
    if (dtype == DType::kF32)
      out[i] = load_as<float>(bytes + 4 * i);
    else if (dtype == DType::kBF16)
      out[i] = float_of_bf16(load_as<std::uint16_t>(bytes + 2 * i));
    else
      out[i] = factor * values[bytes[i]];
}

float score_of(const AttentionTile& tile, const AttentionQuery& query, const float* key,
               std::int64_t position) {
  float product = 0;
  for (std::int64_t d = 0; d < tile.cached.head_dim; ++d) product += query.query[d] * key[d];
  const float score = product * tile.scale + query.slope * static_cast<float>(position + 1 - query.end);
  return tile.soft_cap > 0 ? tile.soft_cap * std::tanh(score / tile.soft_cap) : score;
}

// scores: [kAttentionSplit], vector: room for a key or a value.
void attend(const AttentionTile& tile, const AttentionQuery& query, std::int64_t begin, std::int64_t end,
            float* part, float* scores, float* vector) {
  const KeyValues& cached = tile.cached;
  float maximum = kNothingSeen, sum = 0;
  for (std::int64_t p = begin; p < end; ++p) {
    widen(cached.dtype, cached.keys + offset_of(cached, p, cached.key_bytes), cached.head_dim, vector);
    scores[p - begin] = score_of(tile, query, vector, p);
    maximum = std::max(maximum, scores[p - begin]);
  }
  for (std::int64_t p = begin; p < end; ++p) {
    const float weight = std::exp(scores[p - begin] - maximum);
    sum += weight;
    widen(cached.dtype, cached.values + offset_of(cached, p, cached.value_bytes), cached.value_dim, vector);
    for (std::int64_t d = 0; d < cached.value_dim; ++d) part[16 + d] += weight * vector[d];
  }
  part[0] = maximum;
  part[1] = sum;
}

bool has_seen_nothing(const float* part) {
  return part[0] == kNothingSeen && part[1] == 0.0f;
}

}  // namespace

void scalar_attend_split(const AttentionTile& tile, std::int64_t split, float* parts, float* scratch) {
  const std::int64_t stride = attention_part(tile.cached.value_dim), start = split * kAttentionSplit;
  std::fill_n(parts, std::ssize(tile.queries) * stride, 0.0f);
  for (const AttentionQuery& query : tile.queries) {
    parts[0] = kNothingSeen;
    const std::int64_t begin = std::max(query.first, start);
    const std::int64_t end = std::min(query.end, start + kAttentionSplit);
    if (begin < end) attend(tile, query, begin, end, parts, scratch, scratch + kAttentionSplit);
    parts += stride;
  }
}

void scalar_merge_parts(const float* part, std::int64_t value_dim, float* into) {
  if (has_seen_nothing(part)) return;
  const std::int64_t n = attention_part(value_dim);
  if (has_seen_nothing(into)) {
    std::copy_n(part, n, into);
    return;
  }
  const float maximum = std::max(part[0], into[0]);
  const float kept = std::exp(into[0] - maximum), added = std::exp(part[0] - maximum);
  for (std::int64_t i = 1; i < n; ++i) into[i] = into[i] * kept + part[i] * added;
  into[0] = maximum;
}

void scalar_finish_part(const float* part, const float* sink, std::int64_t value_dim, float* out) {
  const float maximum = sink ? std::max(part[0], *sink) : part[0];
  const float kept = std::exp(part[0] - maximum);
  const float divisor = part[1] * kept + (sink ? std::exp(*sink - maximum) : 0.0f);
  for (std::int64_t i = 0; i < value_dim; ++i) out[i] = part[16 + i] * (kept / divisor);
}

}  // namespace plimsoll::kernels
