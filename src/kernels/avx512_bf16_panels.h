// SPDX-License-Identifier: Apache-2.0
// Products of panels of bf16 (panels.h) with inputs in bf16, two columns in each step (vdpbf16ps): one sum
// for each output, pairs in rising order, whatever the number of tokens. Static throughout.
#pragma once

#include <immintrin.h>

#include "kernels/avx512_panels.h"

namespace plimsoll::kernels {

/// Rows of inputs that pass a panel together: 24 sums, 2 weights and an input stand in registers.
constexpr int kPairTile = 12;

static PLIMSOLL_INLINE __m512bh pairs_of(__m512i bits) {
  return reinterpret_cast<__m512bh>(bits);
}

template <int kRows = kPairTile>
static void pair_rows(std::int64_t rows, const PanelProduct& product, const std::uint16_t* x,
                      std::int64_t first) {
  if (rows < kRows) {
    if constexpr (kRows > 1) pair_rows<kRows - 1>(rows, product, x, first);
    return;
  }
  const auto* pairs = reinterpret_cast<const Byte*>(product.panel);
  __m512 sums[kRows][2];
  for (auto& row : sums) row[0] = row[1] = _mm512_setzero_ps();
  for (std::int64_t k = 0; k < product.columns; k += 2, pairs += kCodesOf4) {
    const __m512bh a = pairs_of(load_512(pairs)), b = pairs_of(load_512(pairs + 64));
#pragma GCC unroll 12
    for (int row = 0; row < kRows; ++row) {
      const __m512bh input =
          pairs_of(_mm512_set1_epi32(load_as<std::int32_t>(x + row * product.columns + k)));
      sums[row][0] = _mm512_dpbf16_ps(sums[row][0], a, input);
      sums[row][1] = _mm512_dpbf16_ps(sums[row][1], b, input);
    }
  }
  for (int row = 0; row < kRows; ++row)
    store_first_wide(sums[row], product.rows, product.out + (first + row) * product.out_stride);
}

/// The field of Kernels; see kernels.h.
static void bf16_panel_pairs(const PanelProduct& product, const std::uint16_t* x) {
  const std::int64_t bytes = panel_bytes(DType::kBF16, product.columns);
  for (std::int64_t first = 0; first < product.tokens; first += kPairTile) {
    if (product.tokens > 1)
      fetch_share(product, bytes, first / kPairTile, (product.tokens + kPairTile - 1) / kPairTile);
    pair_rows(product.tokens - first, product, x + first * product.columns, first);
  }
}

}  // namespace plimsoll::kernels
