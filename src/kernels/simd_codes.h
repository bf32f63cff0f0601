// SPDX-License-Identifier: Apache-2.0
// How do packed codes become floats, 16 at a time? Codes are sorted out in 128-bit registers, the same for
// every V (vec_*.h); only the widening differs. Everything is static or depends on V, so that no copy is
// shared between instruction sets. Values only.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/kernels.h"
#include "kernels/stored.h"

#define PLIMSOLL_INLINE __attribute__((always_inline)) inline

namespace plimsoll::kernels {

using Byte = std::uint8_t;

static PLIMSOLL_INLINE float half_at(const Byte* at) {
  return _cvtsh_ss(load_as<std::uint16_t>(at));
}
static PLIMSOLL_INLINE __m128i bytes_at(const void* at) {
  return _mm_loadu_si128(static_cast<const __m128i*>(at));
}
static PLIMSOLL_INLINE __m128i bytes_of(ScaleBytes scales) {
  return _mm_setr_epi32(static_cast<int>(scales.word[0]), static_cast<int>(scales.word[1]),
                        static_cast<int>(scales.word[2]), static_cast<int>(scales.word[3]));
}
static PLIMSOLL_INLINE __m128i low_nibbles(__m128i bytes) {
  return _mm_and_si128(bytes, _mm_set1_epi8(15));
}
static PLIMSOLL_INLINE __m128i high_nibbles(__m128i bytes) {
  return low_nibbles(_mm_srli_epi16(bytes, 4));
}
/// Bits [shift, shift + 2) of each byte.
static PLIMSOLL_INLINE __m128i pairs(__m128i bytes, int shift) {
  return _mm_and_si128(_mm_srl_epi16(bytes, _mm_cvtsi32_si128(shift)), _mm_set1_epi8(3));
}
/// `value` in each byte whose bit is set in the word's low or high half; 0 in the others.
static PLIMSOLL_INLINE __m128i where_bits(std::uint32_t word, bool high_half, char value) {
  const __m128i which = _mm_add_epi8(_mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1),
                                     _mm_set1_epi8(high_half ? 2 : 0));
  const __m128i bit = _mm_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  const __m128i spread = _mm_shuffle_epi8(_mm_set1_epi32(static_cast<int>(word)), which);
  const __m128i is_set = _mm_cmpeq_epi8(_mm_and_si128(spread, bit), bit);
  return _mm_and_si128(is_set, _mm_set1_epi8(value));
}
/// `value` in each byte that has bit `bit`; 0 in the others.
static PLIMSOLL_INLINE __m128i where_bit(__m128i bytes, int bit, char value) {
  const __m128i mask = _mm_set1_epi8(static_cast<char>(1 << bit));
  return _mm_and_si128(_mm_cmpeq_epi8(_mm_and_si128(bytes, mask), mask), _mm_set1_epi8(value));
}

/// kDigitOfTwo * upper + lower.
static PLIMSOLL_INLINE __m256i joined(__m256i upper, __m256i lower) {
  static_assert(kDigitOfTwo == 255);
  return _mm256_add_epi32(_mm256_sub_epi32(_mm256_slli_epi32(upper, 8), upper), lower);
}

/// A V that keeps codes and scales apart (simd_int8.h) has these functions of its own.
template <class V>
concept KeepsCodes = requires { typename V::Floats; };

template <class V>
  requires(!KeepsCodes<V>)
static PLIMSOLL_INLINE typename V::Unit scaled(typename V::Unit unit, typename V::F scale) {
  for (auto& part : unit.part) part = V::mul(part, scale);
  return unit;
}
// Rounded after the product and after the sum, as the format's definition does: no fused operation here.
template <class V>
  requires(!KeepsCodes<V>)
static PLIMSOLL_INLINE typename V::Unit scaled(typename V::Unit unit, typename V::F scale,
                                               typename V::F offset) {
  for (auto& part : unit.part) part = V::add(V::mul(part, scale), offset);
  return unit;
}

/// Sixteen scales times their block's factor, ready to be broadcast one by one.
struct Steps {
  float at[16];
};
template <class V>
  requires(!KeepsCodes<V>)
static PLIMSOLL_INLINE Steps steps(typename V::Unit scales, typename V::F factor) {
  Steps result;
  float* at = result.at;
  for (auto part : scales.part) {
    V::store(at, V::mul(part, factor));
    at += V::kLanes;
  }
  return result;
}

// What the sixteen codes of a nibble stand for, before scaling: as bytes and as floats.
struct Unsigned4 {
  static constexpr float kNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  template <class V>
  static PLIMSOLL_INLINE __m128i bytes(__m128i nibbles) {
    return nibbles;
  }
};
struct Signed4 {
  static constexpr float kNumbers[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  template <class V>
  static PLIMSOLL_INLINE __m128i bytes(__m128i nibbles) {
    return _mm_sub_epi8(nibbles, _mm_set1_epi8(8));
  }
};
struct Iq4 {
  static constexpr float kNumbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
  template <class V>
  static PLIMSOLL_INLINE __m128i bytes(__m128i nibbles) {
    return _mm_shuffle_epi8(bytes_at(kIq4Values), nibbles);
  }
};
struct Fp4Doubled {
  static constexpr float kNumbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  template <class V>
  static PLIMSOLL_INLINE __m128i bytes(__m128i nibbles) {
    return _mm_shuffle_epi8(bytes_at(kFp4DoubledValues), nibbles);
  }
};

/// The numbers of nibbles under one scale and offset. Where V picks from 16 floats at once, the sixteen
/// possible results are computed and picked; else each code is widened and scaled: the same bits either way.
template <class V, class Codes, bool kPicks = V::kPicksFrom16>
struct Levels;

template <class V, class Codes>
struct Levels<V, Codes, true> {
  typename V::F table;

  PLIMSOLL_INLINE explicit Levels(typename V::F scale) : table(V::mul(V::load(Codes::kNumbers), scale)) {}
  PLIMSOLL_INLINE Levels(typename V::F scale, typename V::F offset)
      : table(V::add(V::mul(V::load(Codes::kNumbers), scale), offset)) {}
  PLIMSOLL_INLINE typename V::Unit of_low(typename V::Nibbles nibbles) const {
    return {{V::pick_low(table, nibbles)}};
  }
  PLIMSOLL_INLINE typename V::Unit of_high(typename V::Nibbles nibbles) const {
    return {{V::pick_high(table, nibbles)}};
  }
};

template <class V, class Codes>
struct Levels<V, Codes, false> {
  typename V::F scale, offset;
  bool has_offset;  // a zero that is added would turn -0 into 0

  PLIMSOLL_INLINE explicit Levels(typename V::F s) : scale(s), offset(V::zero()), has_offset(false) {}
  PLIMSOLL_INLINE Levels(typename V::F s, typename V::F o) : scale(s), offset(o), has_offset(true) {}
  PLIMSOLL_INLINE typename V::Unit of(__m128i nibbles) const {
    const auto unit = V::widen_i8(Codes::template bytes<V>(nibbles));
    return has_offset ? scaled<V>(unit, scale, offset) : scaled<V>(unit, scale);
  }
  PLIMSOLL_INLINE typename V::Unit of_low(__m128i bytes) const { return of(low_nibbles(bytes)); }
  PLIMSOLL_INLINE typename V::Unit of_high(__m128i bytes) const { return of(high_nibbles(bytes)); }
};

/// The two units of 16 bytes: low nibbles, then high ones.
template <class V, class Levels, class Use>
static PLIMSOLL_INLINE void use_nibbles(const Levels& levels, const Byte* codes, int unit, Use use) {
  const auto nibbles = V::nibbles(bytes_at(codes));
  use(unit, levels.of_low(nibbles));
  use(unit + 1, levels.of_high(nibbles));
}

}  // namespace plimsoll::kernels
