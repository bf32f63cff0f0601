// SPDX-License-Identifier: Apache-2.0
// Products of panels (panels.h) in 512-bit registers, with products of bytes (VNNI): codes are the unsigned
// operand as they are stored, inputs the signed one, and what codes stand above the numbers is taken from
// the sum before it starts. Up to six rows of inputs read the panel as it lies, more open codes of four and
// six bits into scratch first. Order of sums as in avx2_panels.h: the same bits. Static throughout.
#pragma once

#include <immintrin.h>

#include "kernels/avx2_panels.h"

namespace plimsoll::kernels {

/// Rows of inputs that pass a panel together: 12 sums of whole numbers, 12 of floats, 2 weights.
constexpr int kWideTile = 6;

static PLIMSOLL_INLINE __m512i load_512(const void* at) {
  return _mm512_loadu_si512(at);
}
static PLIMSOLL_INLINE __m512 both_halves(__m256 a, __m256 b) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
}

/// Four codes of sixteen rows in each of `out`.
template <PanelForm kForm>
static PLIMSOLL_INLINE void wide_codes_of_4(const Byte* codes, int step, __m512i (&out)[2]) {
  if constexpr (kForm.largest > 63) {
    out[0] = load_512(codes + kCodesOf4 * step);
    out[1] = load_512(codes + kCodesOf4 * step + 64);
  } else {
    constexpr int kBytes = kForm.code_bytes / kStepsOf4;
    const __m512i low_bits = _mm512_set1_epi8(15);
    const __m512i nibbles = load_512(codes + kBytes * step);
    out[0] = _mm512_and_si512(nibbles, low_bits);
    out[1] = _mm512_and_si512(_mm512_srli_epi16(nibbles, 4), low_bits);
    if constexpr (kForm.largest > 15) {
      // Bits 0 and 1 are of the first eight rows, 2 and 3 of the next, and so on.
      const __m512i crumbs = _mm512_broadcast_i64x4(load_256(codes + kBytes * step + 64));
      const __m512i at_4 = _mm512_set1_epi8(0x30);
      const __m512i first = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
      const __m512i second = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
      out[0] = _mm512_or_si512(out[0], _mm512_and_si512(_mm512_sllv_epi16(crumbs, first), at_4));
      out[1] = _mm512_or_si512(out[1], _mm512_and_si512(_mm512_srlv_epi16(crumbs, second), at_4));
    }
  }
}

/// Codes of four and six bits as bytes. out: [columns / 4, kCodesOf4]
template <DType kType>
static void open_codes(const Byte* panel, std::int64_t columns, Byte* out) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  for (std::int64_t at = 0; at < columns; at += kForm.elements) {
    panel += kForm.header_bytes;
    for (int i = 0; i < kForm.elements / kInt8Block; ++i, panel += kForm.block_bytes())
      for (int step = 0; step < kStepsOf4; ++step, out += kCodesOf4) {
        __m512i codes[2];
        wide_codes_of_4<kForm>(panel + kForm.scale_bytes, step, codes);
        _mm512_storeu_si512(out, codes[0]);
        _mm512_storeu_si512(out + 64, codes[1]);
      }
  }
}

static PLIMSOLL_INLINE __m512i joined(__m512i upper, __m512i lower) {
  return _mm512_add_epi32(_mm512_sub_epi32(_mm512_slli_epi32(upper, 8), upper), lower);
}

/// kRows blocks side by side, which are kRows / kPlanes rows of inputs, times a panel. open: its codes as
/// bytes, or null: they are read as they lie.
template <DType kType, int kRows, int kPlanes>
static void wide_tile(const Byte* panel, const Byte* open, std::int64_t columns, const Int8Block* x,
                      __m512 (&sums)[kWideTile][2]) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  constexpr PanelForm kBytes = kPanelForm<DType::kQ8_0>;  // how open codes lie
  const std::int64_t blocks = columns / kInt8Block;
  std::int64_t block = 0;
  __m512 running[kRows / kPlanes][2];
  for (auto& row : running) row[0] = row[1] = _mm512_setzero_ps();
  for (std::int64_t at = 0; at < columns; at += kForm.elements) {
    const Byte* const header = panel;
    panel += kForm.header_bytes;
    for (int i = 0; i < kForm.elements / kInt8Block; ++i, ++block, panel += kForm.block_bytes())
      for (int group = 0; group < kInt8Block / kForm.group; ++group) {
        constexpr int kSteps = kForm.group / 4;
        __m512i dots[kRows][2];
        for (int row = 0; row < kRows; ++row)
          dots[row][0] = dots[row][1] =
              _mm512_set1_epi32(-kForm.bias * sum_of_group<kForm>(x[row * blocks + block], group));
#pragma GCC unroll 8
        for (int step = group * kSteps; step < (group + 1) * kSteps; ++step) {
          __m512i codes[2];
          if (open)
            wide_codes_of_4<kBytes>(open + block * kStepsOf4 * kCodesOf4, step, codes);
          else
            wide_codes_of_4<kForm>(panel + kForm.scale_bytes, step, codes);
#pragma GCC unroll 8
          for (int row = 0; row < kRows; ++row) {
            const __m512i input =
                _mm512_set1_epi32(load_as<std::int32_t>(x[row * blocks + block].codes + 4 * step));
            dots[row][0] = _mm512_dpbusd_epi32(dots[row][0], codes[0], input);
            dots[row][1] = _mm512_dpbusd_epi32(dots[row][1], codes[1], input);
          }
        }
        for (int half = 0; half < 2; ++half) {
          const __m512 scales = both_halves(PanelScales<kType>::scale(header, panel, group, 2 * half),
                                            PanelScales<kType>::scale(header, panel, group, 2 * half + 1));
          for (int row = 0; row < kRows; row += kPlanes) {
            const Int8Block* const input = x + row * blocks + block;
            __m512& total = running[row / kPlanes][half];
            const __m512i all =
                kPlanes == 1 ? dots[row][half] : joined(dots[row][half], dots[row + kPlanes - 1][half]);
            total = _mm512_fmadd_ps(_mm512_mul_ps(scales, _mm512_set1_ps(input->scale)),
                                    _mm512_cvtepi32_ps(all), total);
            if constexpr (kForm.has_offset) {
              const __m512 offsets = both_halves(PanelScales<kType>::offset(header, panel, 2 * half),
                                                 PanelScales<kType>::offset(header, panel, 2 * half + 1));
              const int sum = sum_of_planes<kForm, kPlanes>(input, blocks, group);
              total = _mm512_fmadd_ps(offsets, _mm512_set1_ps(input->scale * static_cast<float>(sum)), total);
            }
          }
        }
      }
  }
  for (int row = 0; row < kRows / kPlanes; ++row)
    for (int half = 0; half < 2; ++half) sums[row][half] = running[row][half];
}

static PLIMSOLL_INLINE void store_first_wide(const __m512 (&sums)[2], std::int64_t count, float* out) {
  for (int half = 0; half < 2; ++half) {
    const std::int64_t left = count - 16 * half;
    if (left <= 0) return;
    const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffffu : (1u << left) - 1u);
    _mm512_mask_storeu_ps(out + 16 * half, mask, sums[half]);
  }
}

/// As many tokens as a tile takes, or what is left. Returns how many.
template <DType kType, int kPlanes, int kTokens = kWideTile / kPlanes>
static std::int64_t some_wide_tokens(const PanelProduct& product, const Byte* open, const Int8Block* x,
                                     std::int64_t first) {
  if constexpr (kTokens > 1)
    if (product.tokens - first < kTokens)
      return some_wide_tokens<kType, kPlanes, kTokens - 1>(product, open, x, first);
  __m512 sums[kWideTile][2];
  wide_tile<kType, kTokens * kPlanes, kPlanes>(reinterpret_cast<const Byte*>(product.panel), open,
                                               product.columns, x, sums);
  for (int token = 0; token < kTokens; ++token)
    store_first_wide(sums[token], product.rows, product.out + (first + token) * product.out_stride);
  return kTokens;
}

template <DType kType, int kPlanes>
static void wide_panel_times_blocks(const PanelProduct& product, const Int8Block* x) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  constexpr int kTile = kWideTile / kPlanes;
  const std::int64_t stride = kPlanes * (product.columns / kInt8Block), bytes = kForm.bytes(product.columns);
  Byte* open = nullptr;
  if (product.tokens > kTile && kForm.largest <= 63) {
    open = reinterpret_cast<Byte*>(product.scratch);
    open_codes<kType>(reinterpret_cast<const Byte*>(product.panel), product.columns, open);
  }
  for (std::int64_t first = 0; first < product.tokens;) {
    if (product.tokens > 1) fetch_share(product, bytes, first / kTile, (product.tokens + kTile - 1) / kTile);
    first += some_wide_tokens<kType, kPlanes>(product, open, x + first * stride, first);
  }
}

/// The field of Kernels; see kernels.h.
static void vnni_panel_int8(const PanelProduct& product, const Int8Block* x) {
  for_panel_type(product.dtype, [&](auto type) {
    if (product.planes == 2)
      wide_panel_times_blocks<type(), 2>(product, x);
    else
      wide_panel_times_blocks<type(), 1>(product, x);
  });
}

}  // namespace plimsoll::kernels
