// SPDX-License-Identifier: Apache-2.0
// Eight floats at a time: what the shared kernels (simd_*.h) ask of AVX2 with FMA and F16C. Included by
// avx2.cpp alone, so nothing of it reaches code that other processors run. Values only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/stored.h"

namespace plimsoll::kernels {

struct Avx2 {
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTileTokens = 3;      // 4 x 3 sums, 3 inputs and 1 weight fill the 16 registers
  static constexpr int kAttentionSums = 12;  // beside them inputs of either kind
  struct Unit {
    F part[2];  // 16 elements
  };

  static F zero() { return _mm256_setzero_ps(); }
  static F set1(float value) { return _mm256_set1_ps(value); }
  static F load(const float* at) { return _mm256_loadu_ps(at); }
  static void store(float* at, F value) { _mm256_storeu_ps(at, value); }
  static __m256i first(std::int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static F load_first(const float* at, std::int64_t n) { return _mm256_maskload_ps(at, first(n)); }
  static void store_first(float* at, std::int64_t n, F value) { _mm256_maskstore_ps(at, first(n), value); }

  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  // The second operand where either is NaN.
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // In two steps: 2^128 and 2^-150 have no float, their roots have.
  static F times_power_of_2(F a, F exponent) {
    const __m256i n = _mm256_cvtps_epi32(exponent);
    const __m256i half = _mm256_srai_epi32(n, 1);
    return mul(mul(a, power_of_2(half)), power_of_2(_mm256_sub_epi32(n, half)));
  }
  /// 2^exponent is a normal number.
  static F times_normal_power_of_2(F a, F exponent) {
    return mul(a, power_of_2(_mm256_cvtps_epi32(exponent)));
  }
  /// 0 where x < limit.
  static F unless_below(F x, float limit, F value) {
    return _mm256_and_ps(_mm256_cmp_ps(x, set1(limit), _CMP_NLT_UQ), value);
  }
  static F power_of_2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }

  static F widen_half(const void* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at)));
  }
  static F widen_half_first(const void* at, std::int64_t n) { return _mm256_cvtph_ps(first_words(at, n)); }
  static F widen_bf16(const void* at) {
    return high_halves(_mm_loadu_si128(static_cast<const __m128i*>(at)));
  }
  static F widen_bf16_first(const void* at, std::int64_t n) { return high_halves(first_words(at, n)); }
  static F high_halves(__m128i words) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
  }
  static __m128i first_words(const void* at, std::int64_t n) {
    std::uint16_t words[8] = {};
    for (std::int64_t i = 0; i < n; ++i)
      words[i] = load_as<std::uint16_t>(static_cast<const char*>(at) + 2 * i);
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(words));
  }
  /// Of lanes that hold two bf16 numbers the one at the lower, and at the higher address.
  static F low_bf16(F pairs) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
  }
  static F high_bf16(F pairs) {
    return _mm256_and_ps(pairs, _mm256_castsi256_ps(_mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }
  /// kLanes bytes, in the lower half.
  static __m128i load_bytes(const void* at) { return _mm_loadl_epi64(static_cast<const __m128i*>(at)); }
  static __m128i load_first_bytes(const void* at, std::int64_t n) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, at, static_cast<std::size_t>(n));
    return _mm_cvtsi64_si128(static_cast<long long>(bytes));
  }
  /// 2^-8 of f8_e4m3 numbers that are no NaN.
  static F widen_e4m3(__m128i bytes) {
    // Of the sign's two copies the lower one stands where a half has its exponent.
    const __m128i all_but_it = _mm_set1_epi16(static_cast<short>(0xbfff));
    return _mm256_cvtph_ps(_mm_and_si128(_mm_slli_epi16(_mm_cvtepi8_epi16(bytes), 7), all_but_it));
  }
  static void store_bf16(std::uint16_t* at, F value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i rounded = _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, is_nan), 16);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1)));
  }

  static Unit widen_u8(__m128i bytes) {
    return {{_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
             _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_unpackhi_epi64(bytes, bytes)))}};
  }
  static Unit widen_i8(__m128i bytes) {
    return {{_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
             _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))}};
  }

  /// Lane i of row j becomes lane j of row i.
  static void transpose(F (&rows)[8]) {
    F pairs[8];  // of rows 2i and 2i + 1, lanes 0 1 4 5 and 2 3 6 7 in turn
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    F fours[8];  // of rows 0 to 3, then 4 to 7: lanes i and i + 4
    for (int i = 0; i < 8; i += 4)
      for (int j = 0; j < 2; ++j) {
        fours[i + 2 * j] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0x44);
        fours[i + 2 * j + 1] = _mm256_shuffle_ps(pairs[i + j], pairs[i + j + 2], 0xee);
      }
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
      rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
  }

  static constexpr bool kPicksFrom16 = false;
  static __m128i nibbles(__m128i bytes) { return bytes; }

  /// Sums of all lanes, in one fixed tree: lanes 4 apart, then 2 and 1.
  static float sum(F a) {
    const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_shuffle_ps(by_2, by_2, 1)));
  }
  /// The same tree for four at once.
  static __m128 sum4(F a, F b, F c, F d) {
    const F ab = add(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    const F cd = add(_mm256_permute2f128_ps(c, d, 0x20), _mm256_permute2f128_ps(c, d, 0x31));
    // Lanes of 128 bits: a and c above one another, b and d.
    const F by_2 = add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    const F by_1 = add(by_2, _mm256_permute_ps(by_2, 0xb1));  // a a c c | b b d d
    const __m128 ac = _mm256_castps256_ps128(by_1), bd = _mm256_extractf128_ps(by_1, 1);
    const __m128 mixed = _mm_shuffle_ps(ac, bd, 0x88);  // a c b d
    return _mm_shuffle_ps(mixed, mixed, 0xd8);
  }
  static float largest(F a) {
    const __m128 by_4 = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 by_2 = _mm_max_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_max_ss(by_2, _mm_shuffle_ps(by_2, by_2, 1)));
  }
};

}  // namespace plimsoll::kernels
