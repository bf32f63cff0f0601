// SPDX-License-Identifier: Apache-2.0
// Products of panels of bf16 (panels.h) with inputs in f32, in 256-bit registers: one fused sum for each
// output, K rising, whatever the number of tokens. Static throughout: included for each instruction set.
#pragma once

#include "kernels/panel_parts.h"

namespace plimsoll::kernels {

/// Sums of a tile: 12 of them, 2 weights and an input fill the registers.
constexpr int kFloatSums = 12;

/// kRows rows of floats times kParts x 8 rows of a panel. Even columns are the low words of a pair; a pair is
/// read twice, for all of its columns at once would not fit the registers.
template <int kRows, int kParts>
static PLIMSOLL_INLINE void float_tile(const Byte* pairs, std::int64_t columns, const float* x,
                                       __m256 (&sums)[kRows][kParts]) {
  static_assert(kRows * kParts <= kFloatSums);
  for (auto& row : sums)
    for (auto& sum : row) sum = _mm256_setzero_ps();
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  const auto add_column = [&](std::int64_t k, auto widened) __attribute__((always_inline)) {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; part += 2) {
      const __m256 a = _mm256_castsi256_ps(widened(load_256(pairs + 32 * part)));
      const __m256 b = _mm256_castsi256_ps(widened(load_256(pairs + 32 * part + 32)));
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) {
        const __m256 input = _mm256_set1_ps(x[row * columns + k]);
        sums[row][part] = _mm256_fmadd_ps(a, input, sums[row][part]);
        sums[row][part + 1] = _mm256_fmadd_ps(b, input, sums[row][part + 1]);
        asm("" : "+x"(sums[row][part]), "+x"(sums[row][part + 1]));
      }
    }
  };
  for (std::int64_t k = 0; k < columns; k += 2, pairs += kCodesOf4) {
    add_column(k, [](__m256i pair) { return _mm256_slli_epi32(pair, 16); });
    add_column(k + 1, [upper](__m256i pair) { return _mm256_and_si256(upper, pair); });
  }
}

template <int kRows>
static void rows_times_float_panel(const PanelProduct& product, const float* x, std::int64_t first) {
  constexpr int kParts = kRows <= 3 ? 4 : 2;  // few rows take the panel in one go
  for (int part = 0; part < 4; part += kParts) {
    __m256 sums[kRows][kParts];
    float_tile<kRows, kParts>(reinterpret_cast<const Byte*>(product.panel) + 32 * part, product.columns, x,
                              sums);
    for (int row = 0; row < kRows; ++row)
      store_first_sums<kParts>(sums[row], product.rows - 8 * part,
                               product.out + (first + row) * product.out_stride + 8 * part);
  }
}

/// As many rows as a tile takes, or what is left. Returns how many.
template <int kRows = kFloatSums / 2>
static std::int64_t some_float_rows(const PanelProduct& product, const float* x, std::int64_t first) {
  if constexpr (kRows > 1)
    if (product.tokens - first < kRows) return some_float_rows<kRows - 1>(product, x, first);
  rows_times_float_panel<kRows>(product, x, first);
  return kRows;
}

/// The field of Kernels; see kernels.h.
static void avx2_panel_float(const PanelProduct& product, const float* x) {
  const std::int64_t bytes = panel_bytes(DType::kBF16, product.columns);
  constexpr std::int64_t kTile = kFloatSums / 2;
  for (std::int64_t first = 0; first < product.tokens;) {
    if (product.tokens > 1) fetch_share(product, bytes, first / kTile, (product.tokens + kTile - 1) / kTile);
    first += some_float_rows(product, x + first * product.columns, first);
  }
}

}  // namespace plimsoll::kernels
