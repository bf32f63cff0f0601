// SPDX-License-Identifier: Apache-2.0
// Products of panels with many rows of inputs in 256-bit registers: the panel is opened into scratch, then
// multiplied tile by tile. See avx2_panels.h. Static throughout: included for each instruction set.
#pragma once

#include "kernels/panel_parts.h"

namespace plimsoll::kernels {

/// Rows of inputs that pass a panel together: with two vectors of rows each, 8 sums, 2 weights and an input
/// stand in registers.
constexpr int kByteTile = 4;
/// Up to so many rows of inputs take the panel as it lies, in pairs: opening it pays only for more.
constexpr std::int64_t kMostInPairs = 12;

/// Keeps the compiler from turning a running sum into a tree, which would need more registers than there are.
static PLIMSOLL_INLINE void keep_running(__m256i& sum) {
  asm("" : "+x"(sum));
}

/// Four codes of eight rows in each of `out`.
template <PanelForm kForm>
static PLIMSOLL_INLINE void codes_of_4(const Byte* codes, int step, __m256i (&out)[4]) {
  if constexpr (kForm.largest > 63) {
    for (int part = 0; part < 4; ++part) out[part] = load_256(codes + kCodesOf4 * step + 32 * part);
  } else {
    constexpr int kBytes = kForm.code_bytes / kStepsOf4;
    const __m256i low_bits = _mm256_set1_epi8(15);
    const __m256i a = load_256(codes + kBytes * step), b = load_256(codes + kBytes * step + 32);
    out[0] = _mm256_and_si256(a, low_bits);
    out[1] = _mm256_and_si256(b, low_bits);
    out[2] = _mm256_and_si256(_mm256_srli_epi16(a, 4), low_bits);
    out[3] = _mm256_and_si256(_mm256_srli_epi16(b, 4), low_bits);
    if constexpr (kForm.largest > 15) {
      const __m256i crumbs = load_256(codes + kBytes * step + 64), at_4 = _mm256_set1_epi8(0x30);
      out[0] = _mm256_or_si256(out[0], _mm256_and_si256(_mm256_slli_epi16(crumbs, 4), at_4));
      out[1] = _mm256_or_si256(out[1], _mm256_and_si256(_mm256_slli_epi16(crumbs, 2), at_4));
      out[2] = _mm256_or_si256(out[2], _mm256_and_si256(crumbs, at_4));
      out[3] = _mm256_or_si256(out[3], _mm256_and_si256(_mm256_srli_epi16(crumbs, 2), at_4));
    }
  }
}

/// Adds a group: scale * input's scale * dots, which are exact.
static PLIMSOLL_INLINE __m256 add_scaled_dots(__m256i dots, __m256 scales, __m256 scale, __m256 total) {
  return _mm256_fmadd_ps(_mm256_mul_ps(scales, scale), _mm256_cvtepi32_ps(dots), total);
}
static PLIMSOLL_INLINE __m256 add_scaled_sum(__m256 offsets, __m256 scale, __m256i sum, __m256 total) {
  return _mm256_fmadd_ps(offsets, _mm256_mul_ps(scale, _mm256_cvtepi32_ps(sum)), total);
}
template <PanelForm kForm>
static PLIMSOLL_INLINE int sum_of_group(const Int8Block& x, int group) {
  return kForm.group == kInt8Block ? x.sums[0] + x.sums[1] : x.sums[group];
}
/// Of both planes; the lower block stands `blocks` behind the upper one.
template <PanelForm kForm, int kPlanes>
static PLIMSOLL_INLINE int sum_of_planes(const Int8Block* x, std::int64_t blocks, int group) {
  const int upper = sum_of_group<kForm>(x[0], group);
  return kPlanes == 1 ? upper : kDigitOfTwo * upper + sum_of_group<kForm>(x[blocks], group);
}

/// The same in every lane, without a detour through scalars: sums stand side by side in a block.
template <PanelForm kForm, int kPlanes>
static PLIMSOLL_INLINE __m256i sums_in_lanes(const Int8Block* x, std::int64_t blocks, int group) {
  const __m256i wanted = _mm256_set1_epi32(kForm.group == kInt8Block ? 0x00010001
                                           : group == 0              ? 0x00000001
                                                                     : 0x00010000);
  const auto sum = [wanted](const Int8Block& block) __attribute__((always_inline)) {
    return _mm256_madd_epi16(broadcast_word(block.sums), wanted);
  };
  if constexpr (kPlanes == 1) return sum(x[0]);
  return joined(sum(x[0]), sum(x[blocks]));
}
/// Takes from products of codes what they stand above the numbers.
template <PanelForm kForm>
static PLIMSOLL_INLINE __m256i corrected(__m256i dots, __m256i sum) {
  if constexpr (kForm.bias == 0) return dots;
  constexpr int kShift = __builtin_ctz(static_cast<unsigned>(kForm.bias | 256));
  static_assert(kForm.bias == 0 || kForm.bias == 1 << kShift);
  return _mm256_sub_epi32(dots, _mm256_slli_epi32(sum, kShift));
}

/// Products of bytes that a sum of 16 bits holds: of pairs of codes and inputs of at most 127.
template <PanelForm kForm>
constexpr int kStepsIn16Bits = 32767 / (2 * 127 * kForm.largest);

/// A panel as the tiles of several rows read it; half a panel after the other, in scratch.
struct OpenPanel {
  Byte* codes;     // [2, columns / 4, 64] bytes, or [2, columns / 2, 32] words
  float* scales;   // [2, columns / group, 16]
  float* offsets;  // the same
  Byte* inputs;    // [kByteTile, columns] words

  PLIMSOLL_INLINE OpenPanel(std::byte* scratch, std::int64_t columns)
      : codes(reinterpret_cast<Byte*>(scratch)),
        scales(reinterpret_cast<float*>(codes + 64 * columns)),
        offsets(scales + 2 * columns),
        inputs(reinterpret_cast<Byte*>(offsets + 2 * columns)) {}
};

template <DType kType>
static void open_panel(const Byte* panel, std::int64_t columns, const OpenPanel& open) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  constexpr int kGroups = kInt8Block / kForm.group;
  const std::int64_t half_groups = columns / kForm.group * kHalfPanel;
  Byte* codes = open.codes;
  float *scales = open.scales, *offsets = open.offsets;
  const std::int64_t half_codes = columns * kHalfPanel * (kForm.largest > 63 ? 2 : 1);
  for (std::int64_t at = 0; at < columns; at += kForm.elements) {
    const Byte* const header = panel;
    panel += kForm.header_bytes;
    for (int i = 0; i < kForm.elements / kInt8Block; ++i, panel += kForm.block_bytes()) {
      for (int part = 0; part < 4; ++part) {
        const std::int64_t place = part / 2 * half_groups + part % 2 * 8;
        for (int group = 0; group < kGroups; ++group)
          _mm256_storeu_ps(scales + place + group * kHalfPanel,
                           PanelScales<kType>::scale(header, panel, group, part));
        if constexpr (kForm.has_offset)
          _mm256_storeu_ps(offsets + place, PanelScales<kType>::offset(header, panel, part));
      }
      scales += kGroups * kHalfPanel;
      offsets += kHalfPanel;
      for (int step = 0; step < kStepsOf4; ++step) {
        __m256i parts[4];
        codes_of_4<kForm>(panel + kForm.scale_bytes, step, parts);
        for (int part = 0; part < 4; ++part) {
          Byte* const out = codes + part / 2 * half_codes + part % 2 * 32;
          if constexpr (kForm.largest > 63) {
            // Words of four rows with four numbers each, twice; then pairs of numbers of eight rows.
            const __m256 low = _mm256_castsi256_ps(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(parts[part])));
            const __m256 high =
                _mm256_castsi256_ps(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(parts[part], 1)));
            const __m256d front = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0x88));
            const __m256d back = _mm256_castps_pd(_mm256_shuffle_ps(low, high, 0xdd));
            _mm256_storeu_pd(reinterpret_cast<double*>(out), _mm256_permute4x64_pd(front, 0xd8));
            _mm256_storeu_pd(reinterpret_cast<double*>(out + 64), _mm256_permute4x64_pd(back, 0xd8));
          } else {
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), parts[part]);
          }
        }
        codes += kForm.largest > 63 ? 128 : 64;
      }
    }
  }
}

/// Half an open panel times kRows blocks side by side, which are kRows / kPlanes rows of inputs: sums[row] of
/// 16 outputs.
template <PanelForm kForm, int kRows, int kPlanes>
static void byte_tile(const OpenPanel& open, int half, std::int64_t columns, const Int8Block* x,
                      __m256 (&sums)[kByteTile][2]) {
  constexpr int kSteps = kForm.group / 4 < kStepsIn16Bits<kForm> ? kForm.group / 4 : kStepsIn16Bits<kForm>;
  const std::int64_t blocks = columns / kInt8Block;
  const Byte* codes = open.codes + half * columns * kHalfPanel;
  const float* scales = open.scales + half * (columns / kForm.group) * kHalfPanel;
  const float* offsets = open.offsets + half * (columns / kForm.group) * kHalfPanel;
  const __m256i ones = _mm256_set1_epi16(1);
  for (int row = 0; row < kRows; ++row) sums[row][0] = sums[row][1] = _mm256_setzero_ps();
  for (std::int64_t block = 0; block < blocks; ++block)
    for (int group = 0; group < kInt8Block / kForm.group; ++group) {
      __m256i dots[kRows][2];
      for (int part = 0; part < kForm.group / 4; part += kSteps) {
        __m256i words[kRows][2];
#pragma GCC unroll 8
        for (int step = 0; step < kSteps; ++step, codes += 64) {
          const __m256i a = load_256(codes), b = load_256(codes + 32);
#pragma GCC unroll 8
          for (int row = 0; row < kRows; ++row) {
            const __m256i input =
                broadcast_word(x[row * blocks + block].codes + group * kForm.group + 4 * (part + step));
            const __m256i pairs_a = _mm256_maddubs_epi16(a, input), pairs_b = _mm256_maddubs_epi16(b, input);
            words[row][0] = step ? _mm256_add_epi16(words[row][0], pairs_a) : pairs_a;
            words[row][1] = step ? _mm256_add_epi16(words[row][1], pairs_b) : pairs_b;
            keep_running(words[row][0]);
            keep_running(words[row][1]);
          }
        }
        for (int row = 0; row < kRows; ++row)
          for (int i = 0; i < 2; ++i) {
            const __m256i four = _mm256_madd_epi16(words[row][i], ones);
            dots[row][i] = part ? _mm256_add_epi32(dots[row][i], four) : four;
          }
      }
      for (int row = 0; row < kRows; row += kPlanes) {
        const Int8Block* const input = x + row * blocks + block;
        const __m256i sum = sums_in_lanes<kForm, kPlanes>(input, blocks, group);
        const __m256 scale = _mm256_broadcast_ss(&input->scale);
        for (int i = 0; i < 2; ++i) {
          __m256& total = sums[row / kPlanes][i];
          const __m256i all = kPlanes == 1 ? dots[row][i] : joined(dots[row][i], dots[row + kPlanes - 1][i]);
          total = add_scaled_dots(corrected<kForm>(all, sum), _mm256_loadu_ps(scales + 8 * i), scale, total);
          if constexpr (kForm.has_offset)
            total = add_scaled_sum(_mm256_loadu_ps(offsets + 8 * i), scale, sum, total);
        }
      }
      scales += kHalfPanel;
      offsets += kHalfPanel;
    }
}

/// The same of codes of eight bits and kRows rows of inputs, both as words: two planes are one of them.
template <PanelForm kForm, int kRows, int kPlanes>
static void word_tile(const OpenPanel& open, int half, std::int64_t columns, const Int8Block* x,
                      __m256 (&sums)[kByteTile][2]) {
  const std::int64_t blocks = columns / kInt8Block;
  const Byte* codes = open.codes + half * columns * 2 * kHalfPanel;
  const float* scales = open.scales + half * blocks * kHalfPanel;
  for (int row = 0; row < kRows; ++row) sums[row][0] = sums[row][1] = _mm256_setzero_ps();
  for (std::int64_t block = 0; block < blocks; ++block, scales += kHalfPanel) {
    __m256i dots[kRows][2];
#pragma GCC unroll 16
    for (int pair = 0; pair < kInt8Block / 2; ++pair, codes += 64) {
      const __m256i a = load_256(codes), b = load_256(codes + 32);
#pragma GCC unroll 8
      for (int row = 0; row < kRows; ++row) {
        const __m256i input =
            broadcast_word(open.inputs + 2 * (row * columns + block * kInt8Block + 2 * pair));
        const __m256i dots_a = _mm256_madd_epi16(a, input), dots_b = _mm256_madd_epi16(b, input);
        dots[row][0] = pair ? _mm256_add_epi32(dots[row][0], dots_a) : dots_a;
        dots[row][1] = pair ? _mm256_add_epi32(dots[row][1], dots_b) : dots_b;
        keep_running(dots[row][0]);
        keep_running(dots[row][1]);
      }
    }
    for (int row = 0; row < kRows; ++row) {
      const Int8Block* const input = x + row * kPlanes * blocks + block;
      const __m256i sum = sums_in_lanes<kForm, kPlanes>(input, blocks, 0);
      const __m256 scale = _mm256_broadcast_ss(&input->scale);
      for (int i = 0; i < 2; ++i)
        sums[row][i] = add_scaled_dots(corrected<kForm>(dots[row][i], sum), _mm256_loadu_ps(scales + 8 * i),
                                       scale, sums[row][i]);
    }
  }
}

/// Inputs as words, both planes in one. out: [rows, columns]
template <int kPlanes>
static void widen_inputs(const Int8Block* x, std::int64_t rows, std::int64_t columns, Byte* out) {
  const std::int64_t blocks = columns / kInt8Block;
  for (std::int64_t row = 0; row < rows; ++row, x += kPlanes * blocks)
    for (std::int64_t block = 0; block < blocks; ++block)
      for (int half = 0; half < 2; ++half, out += 32) {
        __m256i words = _mm256_cvtepi8_epi16(bytes_at(x[block].codes + 16 * half));
        if constexpr (kPlanes == 2)
          words = _mm256_add_epi16(_mm256_sub_epi16(_mm256_slli_epi16(words, 8), words),
                                   _mm256_cvtepi8_epi16(bytes_at(x[blocks + block].codes + 16 * half)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), words);
      }
}

/// Rows of inputs [first, first + kTokens) times an open panel, and what they give written out.
template <DType kType, int kTokens, int kPlanes>
static void tokens_times_open_panel(const PanelProduct& product, const OpenPanel& open, const Int8Block* x,
                                    std::int64_t first) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  if constexpr (kForm.largest > 63) widen_inputs<kPlanes>(x, kTokens, product.columns, open.inputs);
  for (int half = 0; half < 2; ++half) {
    __m256 sums[kByteTile][2];
    if constexpr (kForm.largest > 63)
      word_tile<kForm, kTokens, kPlanes>(open, half, product.columns, x, sums);
    else
      byte_tile<kForm, kTokens * kPlanes, kPlanes>(open, half, product.columns, x, sums);
    for (int token = 0; token < kTokens; ++token)
      store_first_sums<2>(sums[token], product.rows - half * kHalfPanel,
                          product.out + (first + token) * product.out_stride + half * kHalfPanel);
  }
}

/// As many tokens as a tile takes, or what is left. Returns how many.
template <DType kType, int kPlanes, int kTokens>
static std::int64_t some_tokens(const PanelProduct& product, const OpenPanel& open, const Int8Block* x,
                                std::int64_t first) {
  if constexpr (kTokens > 1)
    if (product.tokens - first < kTokens)
      return some_tokens<kType, kPlanes, kTokens - 1>(product, open, x, first);
  tokens_times_open_panel<kType, kTokens, kPlanes>(product, open, x, first);
  return kTokens;
}

}  // namespace plimsoll::kernels
