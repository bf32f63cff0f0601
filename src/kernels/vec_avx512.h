// SPDX-License-Identifier: Apache-2.0
// Sixteen floats at a time: what the shared kernels (simd_*.h) ask of AVX-512 (f, bw, dq, vl). Included by
// avx512.cpp alone, so nothing of it reaches code that other processors run. Values only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/stored.h"

namespace plimsoll::kernels {

struct Avx512 {
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileTokens = 6;      // 4 x 6 sums, 4 weights and 1 input fill 29 of 32 registers
  static constexpr int kAttentionSums = 24;  // beside them inputs of either kind
  struct Unit {
    F part[1];  // 16 elements
  };

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float value) { return _mm512_set1_ps(value); }
  static F load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* at, F value) { _mm512_storeu_ps(at, value); }
  static __mmask16 first(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
  static F load_first(const float* at, std::int64_t n) { return _mm512_maskz_loadu_ps(first(n), at); }
  static void store_first(float* at, std::int64_t n, F value) { _mm512_mask_storeu_ps(at, first(n), value); }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  // The second operand where either is NaN.
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F times_power_of_2(F a, F exponent) { return _mm512_scalef_ps(a, exponent); }

  static F times_normal_power_of_2(F a, F exponent) { return _mm512_scalef_ps(a, exponent); }
  /// 0 where x < limit.
  static F unless_below(F x, float limit, F value) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set1(limit), _CMP_NLT_UQ), value);
  }

  static F widen_half(const void* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
  }
  static F widen_half_first(const void* at, std::int64_t n) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), at));
  }
  static F widen_bf16(const void* at) {
    return high_halves(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
  }
  static F widen_bf16_first(const void* at, std::int64_t n) {
    return high_halves(_mm256_maskz_loadu_epi16(first(n), at));
  }
  static F high_halves(__m256i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
  }
  /// Of lanes that hold two bf16 numbers the one at the lower, and at the higher address.
  static F low_bf16(F pairs) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
  }
  static F high_bf16(F pairs) {
    return _mm512_and_ps(pairs, _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }
  /// kLanes bytes.
  static __m128i load_bytes(const void* at) { return _mm_loadu_si128(static_cast<const __m128i*>(at)); }
  static __m128i load_first_bytes(const void* at, std::int64_t n) {
    return _mm_maskz_loadu_epi8(first(n), at);
  }
  /// 2^-8 of f8_e4m3 numbers that are no NaN.
  static F widen_e4m3(__m128i bytes) {
    // Of the sign's two copies the lower one stands where a half has its exponent.
    const __m256i all_but_it = _mm256_set1_epi16(static_cast<short>(0xbfff));
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7), all_but_it));
  }
  static void store_bf16(std::uint16_t* at, F value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i rounded = _mm512_srli_epi32(_mm512_mask_blend_epi32(is_nan, up, quiet), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), _mm512_cvtepi32_epi16(rounded));
  }

  static Unit widen_u8(__m128i bytes) { return {{_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))}}; }
  static Unit widen_i8(__m128i bytes) { return {{_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))}}; }

  /// Lane i of row j becomes lane j of row i.
  static void transpose(F (&rows)[16]) {
    F fours[16];  // of rows 4i to 4i + 3: lanes j, j + 4, j + 8 and j + 12
    for (int i = 0; i < 16; i += 4) {
      const F a = _mm512_unpacklo_ps(rows[i], rows[i + 1]), b = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
      const F c = _mm512_unpacklo_ps(rows[i + 2], rows[i + 3]);
      const F d = _mm512_unpackhi_ps(rows[i + 2], rows[i + 3]);
      fours[i] = _mm512_shuffle_ps(a, c, 0x44);
      fours[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
      fours[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
      fours[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    for (int j = 0; j < 4; ++j) {  // quarters q of all rows make lane j + 4 q
      const F a = _mm512_shuffle_f32x4(fours[j], fours[4 + j], 0x44);
      const F b = _mm512_shuffle_f32x4(fours[j], fours[4 + j], 0xee);
      const F c = _mm512_shuffle_f32x4(fours[8 + j], fours[12 + j], 0x44);
      const F d = _mm512_shuffle_f32x4(fours[8 + j], fours[12 + j], 0xee);
      rows[j] = _mm512_shuffle_f32x4(a, c, 0x88);
      rows[4 + j] = _mm512_shuffle_f32x4(a, c, 0xdd);
      rows[8 + j] = _mm512_shuffle_f32x4(b, d, 0x88);
      rows[12 + j] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
  }

  // Sixteen bytes with two codes each; picking looks at the low four bits of a lane alone.
  static constexpr bool kPicksFrom16 = true;
  using Nibbles = __m512i;
  static Nibbles nibbles(__m128i bytes) { return _mm512_cvtepu8_epi32(bytes); }
  static F pick_low(F table, Nibbles codes) { return _mm512_permutexvar_ps(codes, table); }
  static F pick_high(F table, Nibbles codes) {
    return _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 4), table);
  }

  /// Sums of all lanes, in one fixed tree: lanes 8 apart, then 4, 2 and 1.
  static float sum(F a) {
    const __m256 by_8 = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 by_4 = _mm_add_ps(_mm256_castps256_ps128(by_8), _mm256_extractf128_ps(by_8, 1));
    const __m128 by_2 = _mm_add_ps(by_4, _mm_movehl_ps(by_4, by_4));
    return _mm_cvtss_f32(_mm_add_ss(by_2, _mm_shuffle_ps(by_2, by_2, 1)));
  }
  /// The same tree for four at once.
  static __m128 sum4(F a, F b, F c, F d) {
    const F ab = add(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    const F cd = add(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    const F by_4 = add(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    const F by_2 = add(by_4, _mm512_permute_ps(by_4, 0x4e));
    const F by_1 = add(by_2, _mm512_permute_ps(by_2, 0xb1));
    const __m512i firsts = _mm512_castsi128_si512(_mm_setr_epi32(0, 4, 8, 12));
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(firsts, by_1));
  }
  static float largest(F a) { return _mm512_reduce_max_ps(a); }
};

}  // namespace plimsoll::kernels
