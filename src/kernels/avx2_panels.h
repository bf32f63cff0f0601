// SPDX-License-Identifier: Apache-2.0
// Products of panels (panels.h) in 256-bit registers. Codes of at most six bits are multiplied as bytes,
// whose products fit 16 bits in sums of a few; codes of eight bits as words. Whole numbers are exact, so
// their order is free; floats are added block by block in rising order of K, one sum for each output,
// whatever the number of tokens. One or two rows of inputs read the panel as it lies, more open it into
// scratch first. Static throughout: included for each instruction set.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "kernels/avx2_open_panels.h"

namespace plimsoll::kernels {

/// One or two blocks side by side, one row of inputs or two, times a panel as it lies.
template <DType kType, int kRows, int kPlanes>
static void panel_times_rows(const Byte* panel, std::int64_t columns, const Int8Block* x,
                             __m256 (&sums)[kRows / kPlanes][4]) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  constexpr int kSteps = kForm.group / 4 < kStepsIn16Bits<kForm> ? kForm.group / 4 : kStepsIn16Bits<kForm>;
  const std::int64_t blocks = columns / kInt8Block;
  const __m256i ones = _mm256_set1_epi16(1);
  for (auto& row : sums)
    for (auto& sum : row) sum = _mm256_setzero_ps();
  std::int64_t block = 0;
  for (std::int64_t at = 0; at < columns; at += kForm.elements) {
    const Byte* const header = panel;
    panel += kForm.header_bytes;
    for (int i = 0; i < kForm.elements / kInt8Block; ++i, ++block, panel += kForm.block_bytes())
      for (int group = 0; group < kInt8Block / kForm.group; ++group) {
        __m256i dots[kRows][4];
        if constexpr (kForm.largest > 63) {
#pragma GCC unroll 8
          for (int step = 0; step < kStepsOf4; ++step) {
            __m256i codes[4];
            codes_of_4<kForm>(panel + kForm.scale_bytes, step, codes);
            for (int part = 0; part < 4; ++part) {
              // A pair of products of magnitudes is at most 2 * 128 * 127.
              const __m256i number = _mm256_xor_si256(codes[part], _mm256_set1_epi8(-128));
              const __m256i magnitude = _mm256_abs_epi8(number);
              for (int row = 0; row < kRows; ++row) {
                const __m256i input = broadcast_word(x[row * blocks + block].codes + 4 * step);
                const __m256i four =
                    _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(input, number)), ones);
                dots[row][part] = step ? _mm256_add_epi32(dots[row][part], four) : four;
                keep_running(dots[row][part]);
              }
            }
          }
        } else {
          for (int first = 0; first < kForm.group / 4; first += kSteps) {
            __m256i words[kRows][4];
#pragma GCC unroll 8
            for (int step = 0; step < kSteps; ++step) {
              __m256i codes[4];
              codes_of_4<kForm>(panel + kForm.scale_bytes, group * (kForm.group / 4) + first + step, codes);
              for (int row = 0; row < kRows; ++row) {
                const __m256i input =
                    broadcast_word(x[row * blocks + block].codes + group * kForm.group + 4 * (first + step));
                for (int part = 0; part < 4; ++part) {
                  const __m256i products = _mm256_maddubs_epi16(codes[part], input);
                  words[row][part] = step ? _mm256_add_epi16(words[row][part], products) : products;
                  keep_running(words[row][part]);
                }
              }
            }
            for (int row = 0; row < kRows; ++row)
              for (int part = 0; part < 4; ++part) {
                const __m256i four = _mm256_madd_epi16(words[row][part], ones);
                dots[row][part] = first ? _mm256_add_epi32(dots[row][part], four) : four;
              }
          }
        }
        for (int part = 0; part < 4; ++part) {
          const __m256 scales = PanelScales<kType>::scale(header, panel, group, part);
          for (int row = 0; row < kRows; row += kPlanes) {
            const Int8Block* const input = x + row * blocks + block;
            const __m256i sum = sums_in_lanes<kForm, kPlanes>(input, blocks, group);
            const __m256 scale = _mm256_broadcast_ss(&input->scale);
            __m256& total = sums[row / kPlanes][part];
            __m256i all =
                kPlanes == 1 ? dots[row][part] : joined(dots[row][part], dots[row + kPlanes - 1][part]);
            if constexpr (kForm.largest <= 63) all = corrected<kForm>(all, sum);
            total = add_scaled_dots(all, scales, scale, total);
            if constexpr (kForm.has_offset)
              total = add_scaled_sum(PanelScales<kType>::offset(header, panel, part), scale, sum, total);
          }
        }
      }
  }
}

/// One or two tokens times the panel as it lies.
template <DType kType, int kTokens, int kPlanes>
static void few_tokens_times_panel(const PanelProduct& product, const Int8Block* x, std::int64_t first) {
  __m256 sums[kTokens][4];
  panel_times_rows<kType, kTokens * kPlanes, kPlanes>(reinterpret_cast<const Byte*>(product.panel),
                                                      product.columns, x, sums);
  for (int token = 0; token < kTokens; ++token)
    store_first_sums<4>(sums[token], product.rows, product.out + (first + token) * product.out_stride);
}

template <DType kType, int kPlanes>
static void panel_times_blocks(const PanelProduct& product, const Int8Block* x) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  constexpr int kTile = kForm.largest > 63 ? kByteTile : kByteTile / kPlanes, kFew = 2 / kPlanes;
  const std::int64_t stride = kPlanes * (product.columns / kInt8Block), bytes = kForm.bytes(product.columns);
  const std::int64_t tokens = product.tokens;
  if (tokens * kPlanes <= kMostInPairs) {
    for (std::int64_t first = 0; first < tokens; first += kFew) {
      if (tokens > kFew) fetch_share(product, bytes, first / kFew, (tokens + kFew - 1) / kFew);
      if (kFew == 1 || tokens - first == 1)
        few_tokens_times_panel<kType, 1, kPlanes>(product, x + first * stride, first);
      else
        few_tokens_times_panel<kType, kFew, kPlanes>(product, x + first * stride, first);
    }
    return;
  }
  const OpenPanel open(product.scratch, product.columns);
  open_panel<kType>(reinterpret_cast<const Byte*>(product.panel), product.columns, open);
  for (std::int64_t first = 0; first < tokens;) {
    fetch_share(product, bytes, first / kTile, (tokens + kTile - 1) / kTile);
    first += some_tokens<kType, kPlanes, kTile>(product, open, x + first * stride, first);
  }
}

/// The field of Kernels; see kernels.h.
[[maybe_unused]] static void avx2_panel_int8(const PanelProduct& product, const Int8Block* x) {
  for_panel_type(product.dtype, [&](auto type) {
    if (product.planes == 2)
      panel_times_blocks<type(), 2>(product, x);
    else
      panel_times_blocks<type(), 1>(product, x);
  });
}

}  // namespace plimsoll::kernels
