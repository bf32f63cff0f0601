// SPDX-License-Identifier: Apache-2.0
// Matrix products for any V (vec_*.h). One output element is one V of sums: element k goes to lane k %
// kLanes, k rises, every step is a fused multiply-add, and the lanes are added in V::sum's tree. All shapes
// below keep to that, so a row times a token gives the same bits whatever stands beside it. Static
// throughout.
#pragma once

#include "kernels/kernels.h"
#include "kernels/simd_blocks.h"

namespace plimsoll::kernels {

// Tokens whose inputs pass over a group of widened rows before the next group: their inputs (300 KB at 768
// columns) stay in the second-level cache, and widening a row costs a few percent of its products.
constexpr std::int64_t kPanelTokens = 96;

template <class V, int kRows>
static PLIMSOLL_INLINE void store_sums(const typename V::F (&sums)[kRows], float* out) {
  if constexpr (kRows == 4) {
    _mm_storeu_ps(out, V::sum4(sums[0], sums[1], sums[2], sums[3]));
  } else {
    for (int row = 0; row < kRows; ++row) out[row] = V::sum(sums[row]);
  }
}

/// kRows widened rows times kTokens tokens.
/// w: [kRows, columns], x: [kTokens, columns], out: [kTokens, out_stride], from its first row on.
template <class V, int kRows, int kTokens>
static void tile(const float* w, const float* x, std::int64_t columns, float* out, std::int64_t out_stride) {
  typename V::F sums[kTokens][kRows];
  for (auto& row : sums)
    for (auto& sum : row) sum = V::zero();
  std::int64_t k = 0;
  for (; k + V::kLanes <= columns; k += V::kLanes) {
    typename V::F inputs[kTokens];
    for (int token = 0; token < kTokens; ++token) inputs[token] = V::load(x + token * columns + k);
    for (int row = 0; row < kRows; ++row) {
      const auto weights = V::load(w + row * columns + k);
      for (int token = 0; token < kTokens; ++token)
        sums[token][row] = V::fma(weights, inputs[token], sums[token][row]);
    }
  }
  if (k < columns)
    for (int row = 0; row < kRows; ++row) {
      const auto weights = V::load_first(w + row * columns + k, columns - k);
      for (int token = 0; token < kTokens; ++token)
        sums[token][row] =
            V::fma(weights, V::load_first(x + token * columns + k, columns - k), sums[token][row]);
    }
  for (int token = 0; token < kTokens; ++token) store_sums<V, kRows>(sums[token], out + token * out_stride);
}

template <class V, int kRows, int kTokens = V::kTileTokens>
static void tile_of(std::int64_t tokens, const float* w, const float* x, std::int64_t columns, float* out,
                    std::int64_t out_stride) {
  if (tokens == kTokens) return tile<V, kRows, kTokens>(w, x, columns, out, out_stride);
  if constexpr (kTokens > 1) tile_of<V, kRows, kTokens - 1>(tokens, w, x, columns, out, out_stride);
}

/// Widened rows times many tokens. w: [rows, columns] with at most kScratchRows rows.
template <class V>
static void rows_times_tokens(const float* w, std::int64_t rows, std::int64_t columns, const float* x,
                              std::int64_t tokens, float* out, std::int64_t out_stride) {
  for (std::int64_t token = 0; token < tokens; token += V::kTileTokens) {
    const std::int64_t num_tokens = tokens - token < V::kTileTokens ? tokens - token : V::kTileTokens;
    const float* const inputs = x + token * columns;
    float* const results = out + token * out_stride;
    std::int64_t row = 0;
    for (; row + 4 <= rows; row += 4)
      tile_of<V, 4>(num_tokens, w + row * columns, inputs, columns, results + row, out_stride);
    for (; row < rows; ++row)
      tile_of<V, 1>(num_tokens, w + row * columns, inputs, columns, results + row, out_stride);
  }
}

/// kRows stored rows times one token, widened on the way. w: first of the rows, out: [kRows].
template <class V, class P, int kRows>
static void plain_rows_times_token(const Byte* w, std::int64_t columns, const float* x, float* out) {
  const std::int64_t row_bytes = columns * P::kBytes;
  typename V::F sums[kRows];
  for (auto& sum : sums) sum = V::zero();
  std::int64_t k = 0;
  for (; k + V::kLanes <= columns; k += V::kLanes) {
    const auto inputs = V::load(x + k);
    for (int row = 0; row < kRows; ++row)
      sums[row] = V::fma(P::template load<V>(w + row * row_bytes + k * P::kBytes), inputs, sums[row]);
  }
  if (k < columns)
    for (int row = 0; row < kRows; ++row)
      sums[row] = V::fma(P::template load_first<V>(w + row * row_bytes + k * P::kBytes, columns - k),
                         V::load_first(x + k, columns - k), sums[row]);
  store_sums<V, kRows>(sums, out);
}

template <class V, class Q, int kRows>
static void block_rows_times_token(const Byte* w, std::int64_t columns, const float* x, float* out) {
  const std::int64_t row_bytes = columns / Q::kElements * Q::kBytes;
  typename V::F sums[kRows];
  for (auto& sum : sums) sum = V::zero();
  for (std::int64_t k = 0; k < columns; k += Q::kElements, w += Q::kBytes)
    for (int row = 0; row < kRows; ++row) {
      auto sum = sums[row];
      Q::template each<V>(w + row * row_bytes,
                          [&](int unit, typename V::Unit values) __attribute__((always_inline)) {
                            const float* at = x + k + 16 * unit;
                            for (auto part : values.part) {
                              sum = V::fma(part, V::load(at), sum);
                              at += V::kLanes;
                            }
                          });
      sums[row] = sum;
    }
  store_sums<V, kRows>(sums, out);
}

/// The fields of Kernels::matmul; see kernels.h.
template <class V>
static void simd_matmul(DType dtype, const std::byte* weights, std::int64_t columns, std::int64_t row_begin,
                        std::int64_t row_end, const float* x, std::int64_t tokens, float* out,
                        std::int64_t out_stride, float* scratch) {
  const auto* const w = reinterpret_cast<const Byte*>(weights);
  if (tokens == 1) {
    const auto by_rows = [&](std::int64_t row_bytes, auto four, auto one) {
      std::int64_t row = row_begin;
      for (; row + 4 <= row_end; row += 4) four(w + row * row_bytes, columns, x, out + row);
      for (; row < row_end; ++row) one(w + row * row_bytes, columns, x, out + row);
    };
    return for_type<V>(
        dtype,
        [&](auto plain) {
          using P = decltype(plain);
          by_rows(columns * P::kBytes, plain_rows_times_token<V, P, 4>, plain_rows_times_token<V, P, 1>);
        },
        [&](auto blocks) {
          using Q = decltype(blocks);
          by_rows(columns / Q::kElements * Q::kBytes, block_rows_times_token<V, Q, 4>,
                  block_rows_times_token<V, Q, 1>);
        });
  }
  std::int64_t row_bytes = 0;
  for_type<V>(
      dtype, [&](auto plain) { row_bytes = columns * plain.kBytes; },
      [&](auto blocks) { row_bytes = columns / blocks.kElements * blocks.kBytes; });
  for (std::int64_t token = 0; token < tokens; token += kPanelTokens) {
    const std::int64_t num_tokens = tokens - token < kPanelTokens ? tokens - token : kPanelTokens;
    for (std::int64_t row = row_begin; row < row_end; row += kScratchRows) {
      const std::int64_t rows = row_end - row < kScratchRows ? row_end - row : kScratchRows;
      const float* widened = scratch;
      if (dtype == DType::kF32)
        widened = reinterpret_cast<const float*>(w + row * row_bytes);
      else
        simd_to_float<V>(dtype, weights + row * row_bytes, rows * columns, scratch);
      rows_times_tokens<V>(widened, rows, columns, x + token * columns, num_tokens,
                           out + token * out_stride + row, out_stride);
    }
  }
}

}  // namespace plimsoll::kernels
