// SPDX-License-Identifier: Apache-2.0
// Products of blocks of whole numbers with inputs in eight bits, eight rows of weights at a time, in 256-bit
// registers whatever V (vec_*.h) is. Within a group of weights the sum is a whole number and exact; groups
// are added in rising order, one sum for each output, so a row times a token gives the same bits whatever
// stands beside it and on every processor. Everything is static or depends on V.
#pragma once

#include "kernels/int8_blocks.h"
#include "kernels/simd_blocks.h"

namespace plimsoll::kernels {

constexpr int kInt8Rows = 8;  // that pass together: one lane of floats for each

/// How the codes of a block type stand for numbers: scale * code + offset of a group.
struct CodeForm {
  int group = 0;  // weights under one scale: 16 or 32; 0: they are no whole numbers
  int bias = 0;   // what makes every code 0 or more, below 128
  bool has_offset = false;
  bool is_whole_byte = false;  // codes down to -128: no bias helps
};
template <class Q>
static constexpr CodeForm kCodeForm{};
template <>
constexpr CodeForm kCodeForm<Q4_0>{32, 8};
template <>
constexpr CodeForm kCodeForm<Q4_1>{32, 0, true};
template <>
constexpr CodeForm kCodeForm<Q5_0>{32, 16};
template <>
constexpr CodeForm kCodeForm<Q5_1>{32, 0, true};
template <>
constexpr CodeForm kCodeForm<Q8_0>{32, 0, false, true};
template <>
constexpr CodeForm kCodeForm<Q2K>{16, 0, true};
template <>
constexpr CodeForm kCodeForm<Q3K>{16, 4};
template <>
constexpr CodeForm kCodeForm<Q4K>{32, 0, true};
template <>
constexpr CodeForm kCodeForm<Q5K>{32, 0, true};
template <>
constexpr CodeForm kCodeForm<Q6K>{16, 32};
template <>
constexpr CodeForm kCodeForm<IQ4NL>{32, 0, false, true};
template <>
constexpr CodeForm kCodeForm<IQ4XS>{32, 0, false, true};
template <>
constexpr CodeForm kCodeForm<MXFP4>{32, 12};

/// Stands in for V where blocks are read (simd_blocks.h): codes stay bytes, scale and offset beside them.
template <class V>
struct CodesOf {
  using Floats = V;
  using F = float;
  struct Unit {
    __m128i codes;
    bool is_unsigned;
    float scale = 1, offset = 0;
  };
  static constexpr bool kPicksFrom16 = false;

  static F zero() { return 0; }
  static F set1(float value) { return value; }
  static Unit widen_u8(__m128i bytes) { return {bytes, true}; }
  static Unit widen_i8(__m128i bytes) { return {bytes, false}; }
  static __m128i nibbles(__m128i bytes) { return bytes; }
};
template <KeepsCodes V>
static PLIMSOLL_INLINE typename V::Unit scaled(typename V::Unit unit, typename V::F scale) {
  unit.scale = scale;
  return unit;
}
template <KeepsCodes V>
static PLIMSOLL_INLINE typename V::Unit scaled(typename V::Unit unit, typename V::F scale,
                                               typename V::F offset) {
  unit.scale = scale;
  unit.offset = offset;
  return unit;
}
template <KeepsCodes V>
static PLIMSOLL_INLINE Steps steps(typename V::Unit scales, typename V::F factor) {
  using Floats = typename V::Floats;
  return steps<Floats>(scales.is_unsigned ? Floats::widen_u8(scales.codes) : Floats::widen_i8(scales.codes),
                       Floats::set1(factor));
}

/// Eight rows, sorted: what the products read. Points into a thread's scratch.
struct CodePanel {
  Byte* codes = nullptr;     // [columns / 32, kInt8Rows, 32]
  float* scales = nullptr;   // [columns / group, kInt8Rows]
  float* offsets = nullptr;  // the same; of types that have them

  CodePanel(float* scratch, std::int64_t columns)
      : codes(reinterpret_cast<Byte*>(scratch)),
        scales(scratch + columns * kInt8Rows / 4),
        offsets(scales + columns * kInt8Rows / 16) {}
};

/// Reads one row into a panel.
template <class V, class Q>
static void read_codes(const Byte* stored, std::int64_t columns, int row, CodePanel panel) {
  constexpr CodeForm kForm = kCodeForm<Q>;
  for (std::int64_t k = 0; k < columns; k += Q::kElements, stored += Q::kBytes)
    Q::template each<CodesOf<V>>(
        stored, [&](int number, typename CodesOf<V>::Unit unit) __attribute__((always_inline)) {
          const std::int64_t at = k / 16 + number;
          const __m128i codes = _mm_add_epi8(unit.codes, _mm_set1_epi8(kForm.bias));
          _mm_storeu_si128(
              reinterpret_cast<__m128i*>(panel.codes + (at / 2 * kInt8Rows + row) * 32 + at % 2 * 16), codes);
          const std::int64_t group = at * 16 / kForm.group * kInt8Rows + row;
          panel.scales[group] = unit.scale;
          if constexpr (kForm.has_offset) panel.offsets[group] = unit.offset;
        });
}

/// Sums of four codes times four inputs, [8]. A pair of products is at most 2 * 128 * 127: no overflow of 16
/// bits.
template <bool kIsWholeByte>
static PLIMSOLL_INLINE __m256i products_of_four(const Byte* codes, __m256i inputs) {
  const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
  const __m256i pairs =
      kIsWholeByte ? _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(inputs, weights))
                   : _mm256_maddubs_epi16(weights, inputs);
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}

/// Of four rows, each 128-bit half summed: [half, row].
static PLIMSOLL_INLINE __m256i sums_of_halves(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i ab = _mm256_add_epi32(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  const __m256i cd = _mm256_add_epi32(_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
  return _mm256_add_epi32(_mm256_unpacklo_epi64(ab, cd), _mm256_unpackhi_epi64(ab, cd));
}

/// Adds a group: scale * input's scale * (dots - bias * sum) + offset * input's scale * sum.
template <CodeForm kForm>
static PLIMSOLL_INLINE __m256 add_group(__m256i dots, const CodePanel& panel, std::int64_t group, float scale,
                                        int sum, __m256 total) {
  const __m256i exact = _mm256_sub_epi32(dots, _mm256_set1_epi32(kForm.bias * sum));
  const __m256 scales =
      _mm256_mul_ps(_mm256_loadu_ps(panel.scales + group * kInt8Rows), _mm256_set1_ps(scale));
  total = _mm256_fmadd_ps(scales, _mm256_cvtepi32_ps(exact), total);
  if constexpr (kForm.has_offset)
    total = _mm256_fmadd_ps(_mm256_loadu_ps(panel.offsets + group * kInt8Rows),
                            _mm256_set1_ps(scale * static_cast<float>(sum)), total);
  return total;
}

/// Of eight rows, the sums of the first and of the last 16 codes of a block.
struct HalfDots {
  __m256i first, second;
};
template <CodeForm kForm>
static PLIMSOLL_INLINE HalfDots dots_of_block(const Byte* codes, const Int8Block& x) {
  const __m256i inputs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x.codes));
  const auto next = [&] {
    const __m256i products = products_of_four<kForm.is_whole_byte>(codes, inputs);
    codes += 32;
    return products;
  };
  const auto four = [&] {
    const __m256i a = next(), b = next(), c = next(), d = next();
    return sums_of_halves(a, b, c, d);
  };
  const __m256i upper = four(), lower = four();
  return {_mm256_permute2x128_si256(upper, lower, 0x20), _mm256_permute2x128_si256(upper, lower, 0x31)};
}

/// Eight rows times one token. x: [planes, columns / 32].
template <CodeForm kForm>
static __m256 panel_times_token(const CodePanel& panel, std::int64_t columns, const Int8Block* x,
                                int planes) {
  __m256 total = _mm256_setzero_ps();
  const std::int64_t blocks = columns / kInt8Block;
  for (std::int64_t block = 0; block < blocks; ++block, ++x) {
    const Byte* const codes = panel.codes + block * kInt8Rows * kInt8Block;
    HalfDots dots = dots_of_block<kForm>(codes, *x);
    int sums[2] = {x->sums[0], x->sums[1]};
    if (planes == 2) {
      const HalfDots lower = dots_of_block<kForm>(codes, x[blocks]);
      dots = {joined(dots.first, lower.first), joined(dots.second, lower.second)};
      for (int half = 0; half < 2; ++half) sums[half] = kDigitOfTwo * sums[half] + x[blocks].sums[half];
    }
    if constexpr (kForm.group == 16) {
      total = add_group<kForm>(dots.first, panel, 2 * block, x->scale, sums[0], total);
      total = add_group<kForm>(dots.second, panel, 2 * block + 1, x->scale, sums[1], total);
    } else {
      total = add_group<kForm>(_mm256_add_epi32(dots.first, dots.second), panel, block, x->scale,
                               sums[0] + sums[1], total);
    }
  }
  return total;
}

/// The field of Kernels; see kernels.h.
template <class V>
static void simd_matmul_int8(DType dtype, const std::byte* weights, std::int64_t columns, std::int64_t rows,
                             const Int8Block* x, std::int64_t tokens, int planes, float* out,
                             std::int64_t out_stride, float* scratch) {
  for_type<V>(
      dtype, [](auto) {},
      [&](auto blocks) {
        using Q = decltype(blocks);
        constexpr CodeForm kForm = kCodeForm<Q>;
        if constexpr (kForm.group > 0) {
          const auto* const stored = reinterpret_cast<const Byte*>(weights);
          const CodePanel panel(scratch, columns);
          for (std::int64_t first = 0; first < rows; first += kInt8Rows) {
            const int count = static_cast<int>(rows - first < kInt8Rows ? rows - first : kInt8Rows);
            for (int row = 0; row < kInt8Rows; ++row)  // the last one fills the lanes that are left
              read_codes<V, Q>(
                  stored + (first + (row < count ? row : count - 1)) * (columns / Q::kElements * Q::kBytes),
                  columns, row, panel);
            const std::int64_t in_blocks = columns / kInt8Block;
            for (std::int64_t token = 0; token < tokens; ++token) {
              const __m256 total =
                  panel_times_token<kForm>(panel, columns, x + token * planes * in_blocks, planes);
              float sums[kInt8Rows];
              _mm256_storeu_ps(sums, total);
              std::memcpy(out + token * out_stride + first, sums,
                          static_cast<std::size_t>(count) * sizeof(float));
            }
          }
        }
      });
}

}  // namespace plimsoll::kernels
