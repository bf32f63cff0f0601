// SPDX-License-Identifier: Apache-2.0
// What floats do stored blocks stand for, 16 at a time? Each block type has each<V>(block, f), which calls
// f(unit, values) for its units of 16 elements in rising order. Codes are sorted out in 128-bit registers,
// the same for every V (vec_*.h); only the widening differs. Everything is static or depends on V, so that no
// copy is shared between instruction sets. Source: docs/formats/gguf_blocks.md.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/dtype.h"
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

template <class V>
static PLIMSOLL_INLINE typename V::Unit scaled(typename V::Unit unit, typename V::F scale) {
  for (auto& part : unit.part) part = V::mul(part, scale);
  return unit;
}
// Rounded after the product and after the sum, as the format's definition does: no fused operation here.
template <class V>
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
static PLIMSOLL_INLINE Steps steps(typename V::Unit scales, typename V::F factor) {
  Steps result;
  float* at = result.at;
  for (auto part : scales.part) {
    V::store(at, V::mul(part, factor));
    at += V::kLanes;
  }
  return result;
}

struct Q4_0 {
  static constexpr DType kType = DType::kQ4_0;
  static constexpr int kElements = 32, kBytes = 18;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block));
    const __m128i codes = bytes_at(block + 2), bias = _mm_set1_epi8(8);
    use(0, scaled<V>(V::widen_i8(_mm_sub_epi8(low_nibbles(codes), bias)), d));
    use(1, scaled<V>(V::widen_i8(_mm_sub_epi8(high_nibbles(codes), bias)), d));
  }
};

struct Q4_1 {
  static constexpr DType kType = DType::kQ4_1;
  static constexpr int kElements = 32, kBytes = 20;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block)), m = V::set1(half_at(block + 2));
    const __m128i codes = bytes_at(block + 4);
    use(0, scaled<V>(V::widen_u8(low_nibbles(codes)), d, m));
    use(1, scaled<V>(V::widen_u8(high_nibbles(codes)), d, m));
  }
};

struct Q5_0 {
  static constexpr DType kType = DType::kQ5_0;
  static constexpr int kElements = 32, kBytes = 22;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block));
    const auto fifth = load_as<std::uint32_t>(block + 2);
    const __m128i codes = bytes_at(block + 6), bias = _mm_set1_epi8(16);
    const __m128i low = _mm_or_si128(low_nibbles(codes), where_bits(fifth, false, 16));
    const __m128i high = _mm_or_si128(high_nibbles(codes), where_bits(fifth, true, 16));
    use(0, scaled<V>(V::widen_i8(_mm_sub_epi8(low, bias)), d));
    use(1, scaled<V>(V::widen_i8(_mm_sub_epi8(high, bias)), d));
  }
};

struct Q5_1 {
  static constexpr DType kType = DType::kQ5_1;
  static constexpr int kElements = 32, kBytes = 24;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block)), m = V::set1(half_at(block + 2));
    const auto fifth = load_as<std::uint32_t>(block + 4);
    const __m128i codes = bytes_at(block + 8);
    use(0, scaled<V>(V::widen_u8(_mm_or_si128(low_nibbles(codes), where_bits(fifth, false, 16))), d, m));
    use(1, scaled<V>(V::widen_u8(_mm_or_si128(high_nibbles(codes), where_bits(fifth, true, 16))), d, m));
  }
};

struct Q8_0 {
  static constexpr DType kType = DType::kQ8_0;
  static constexpr int kElements = 32, kBytes = 34;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block));
    use(0, scaled<V>(V::widen_i8(bytes_at(block + 2)), d));
    use(1, scaled<V>(V::widen_i8(bytes_at(block + 18)), d));
  }
};

struct Q2K {
  static constexpr DType kType = DType::kQ2K;
  static constexpr int kElements = 256, kBytes = 84;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const __m128i scales = bytes_at(block);
    const Steps step = steps<V>(V::widen_u8(low_nibbles(scales)), V::set1(half_at(block + 80)));
    const Steps minimum = steps<V>(V::widen_u8(high_nibbles(scales)), V::set1(-half_at(block + 82)));
#pragma GCC unroll 16
    for (int unit = 0; unit < 16; ++unit) {
      const __m128i codes = pairs(bytes_at(block + 16 + 32 * (unit / 8) + 16 * (unit % 2)), unit % 8 / 2 * 2);
      use(unit, scaled<V>(V::widen_u8(codes), V::set1(step.at[unit]), V::set1(minimum.at[unit])));
    }
  }
};

struct Q3K {
  static constexpr DType kType = DType::kQ3K;
  static constexpr int kElements = 256, kBytes = 110;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const __m128i scales = _mm_sub_epi8(bytes_of(unpack_k3_scales(block + 96)), _mm_set1_epi8(32));
    const Steps step = steps<V>(V::widen_i8(scales), V::set1(half_at(block + 108)));
#pragma GCC unroll 16
    for (int unit = 0; unit < 16; ++unit) {
      const __m128i low = pairs(bytes_at(block + 32 + 32 * (unit / 8) + 16 * (unit % 2)), unit % 8 / 2 * 2);
      const __m128i high = where_bit(bytes_at(block + 16 * (unit % 2)), unit / 2, 4);
      const __m128i codes = _mm_sub_epi8(_mm_or_si128(low, high), _mm_set1_epi8(4));
      use(unit, scaled<V>(V::widen_i8(codes), V::set1(step.at[unit])));
    }
  }
};

/// q4_k (kHasFifth false) and q5_k.
template <bool kHasFifth>
struct Q45K {
  static constexpr DType kType = kHasFifth ? DType::kQ5K : DType::kQ4K;
  static constexpr int kElements = 256, kBytes = kHasFifth ? 176 : 144;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const __m128i scales = bytes_of(unpack_k4_scales(block + 4));
    const __m128i minima = _mm_unpackhi_epi64(scales, scales);
    const Steps step = steps<V>(V::widen_u8(scales), V::set1(half_at(block)));
    const Steps minimum = steps<V>(V::widen_u8(minima), V::set1(-half_at(block + 2)));
    const Byte* const nibbles = block + (kHasFifth ? 48 : 16);
#pragma GCC unroll 16
    for (int unit = 0; unit < 16; ++unit) {
      const int group = unit / 2;
      const __m128i bytes = bytes_at(nibbles + 32 * (unit / 4) + 16 * (unit % 2));
      __m128i codes = group % 2 ? high_nibbles(bytes) : low_nibbles(bytes);
      if constexpr (kHasFifth)
        codes = _mm_or_si128(codes, where_bit(bytes_at(block + 16 + 16 * (unit % 2)), group, 16));
      use(unit, scaled<V>(V::widen_u8(codes), V::set1(step.at[group]), V::set1(minimum.at[group])));
    }
  }
};
using Q4K = Q45K<false>;
using Q5K = Q45K<true>;

struct Q6K {
  static constexpr DType kType = DType::kQ6K;
  static constexpr int kElements = 256, kBytes = 210;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const Steps step = steps<V>(V::widen_i8(bytes_at(block + 192)), V::set1(half_at(block + 208)));
#pragma GCC unroll 16
    for (int unit = 0; unit < 16; ++unit) {
      const int half = unit / 8, quarter = unit % 8 / 2, odd = unit % 2;
      const __m128i bytes = bytes_at(block + 64 * half + 32 * (quarter % 2) + 16 * odd);
      const __m128i low = quarter < 2 ? low_nibbles(bytes) : high_nibbles(bytes);
      const __m128i high = pairs(bytes_at(block + 128 + 32 * half + 16 * odd), 2 * quarter);
      const __m128i codes = _mm_sub_epi8(_mm_or_si128(low, _mm_slli_epi16(high, 4)), _mm_set1_epi8(32));
      use(unit, scaled<V>(V::widen_i8(codes), V::set1(step.at[unit])));
    }
  }
};

/// Sixteen nibbles as the numbers of a table.
static PLIMSOLL_INLINE __m128i look_up(const std::int8_t* table, __m128i nibbles) {
  return _mm_shuffle_epi8(bytes_at(table), nibbles);
}

struct IQ4NL {
  static constexpr DType kType = DType::kIQ4NL;
  static constexpr int kElements = 32, kBytes = 18;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block));
    const __m128i codes = bytes_at(block + 2);
    use(0, scaled<V>(V::widen_i8(look_up(kIq4Values, low_nibbles(codes))), d));
    use(1, scaled<V>(V::widen_i8(look_up(kIq4Values, high_nibbles(codes))), d));
  }
};

struct IQ4XS {
  static constexpr DType kType = DType::kIQ4XS;
  static constexpr int kElements = 256, kBytes = 136;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const float d = half_at(block);
    for (int group = 0; group < 8; ++group) {
      const auto step = V::set1(d * static_cast<float>(iq4_xs_scale(block, group)));
      const __m128i codes = bytes_at(block + 8 + 16 * group);
      use(2 * group, scaled<V>(V::widen_i8(look_up(kIq4Values, low_nibbles(codes))), step));
      use(2 * group + 1, scaled<V>(V::widen_i8(look_up(kIq4Values, high_nibbles(codes))), step));
    }
  }
};

struct MXFP4 {
  static constexpr DType kType = DType::kMXFP4;
  static constexpr int kElements = 32, kBytes = 17;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_of_e8m0(block[0]));
    const __m128i codes = bytes_at(block + 1);
    use(0, scaled<V>(V::widen_i8(look_up(kFp4DoubledValues, low_nibbles(codes))), d));
    use(1, scaled<V>(V::widen_i8(look_up(kFp4DoubledValues, high_nibbles(codes))), d));
  }
};

// Plain numbers: V's width at a time, and the first n of one more.
struct PlainF32 {
  static constexpr int kBytes = 4;
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* at) {
    return V::load(reinterpret_cast<const float*>(at));
  }
  template <class V>
  static PLIMSOLL_INLINE typename V::F load_first(const Byte* at, std::int64_t n) {
    return V::load_first(reinterpret_cast<const float*>(at), n);
  }
};
struct PlainF16 {
  static constexpr int kBytes = 2;
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* at) {
    return V::widen_half(at);
  }
  template <class V>
  static PLIMSOLL_INLINE typename V::F load_first(const Byte* at, std::int64_t n) {
    return V::widen_half_first(at, n);
  }
};
struct PlainBF16 {
  static constexpr int kBytes = 2;
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* at) {
    return V::widen_bf16(at);
  }
  template <class V>
  static PLIMSOLL_INLINE typename V::F load_first(const Byte* at, std::int64_t n) {
    return V::widen_bf16_first(at, n);
  }
};

/// Calls plain(PlainF32{}) or blocks(Q4_1{}), as the type says; nothing for a type that cannot be read.
template <class V, class Plain, class Blocks>
static void for_type(DType dtype, Plain plain, Blocks blocks) {
  switch (dtype) {
    case DType::kF32:
      return plain(PlainF32{});
    case DType::kF16:
      return plain(PlainF16{});
    case DType::kBF16:
      return plain(PlainBF16{});
    case DType::kQ4_0:
      return blocks(Q4_0{});
    case DType::kQ4_1:
      return blocks(Q4_1{});
    case DType::kQ5_0:
      return blocks(Q5_0{});
    case DType::kQ5_1:
      return blocks(Q5_1{});
    case DType::kQ8_0:
      return blocks(Q8_0{});
    case DType::kQ2K:
      return blocks(Q2K{});
    case DType::kQ3K:
      return blocks(Q3K{});
    case DType::kQ4K:
      return blocks(Q4K{});
    case DType::kQ5K:
      return blocks(Q5K{});
    case DType::kQ6K:
      return blocks(Q6K{});
    case DType::kIQ4NL:
      return blocks(IQ4NL{});
    case DType::kIQ4XS:
      return blocks(IQ4XS{});
    case DType::kMXFP4:
      return blocks(MXFP4{});
    default:
      return;
  }
}

template <class V>
static void simd_to_float(DType dtype, const std::byte* stored, std::int64_t elements, float* out) {
  const auto* bytes = reinterpret_cast<const Byte*>(stored);
  for_type<V>(
      dtype,
      [&](auto plain) {
        using P = decltype(plain);
        std::int64_t i = 0;
        for (; i + V::kLanes <= elements; i += V::kLanes)
          V::store(out + i, P::template load<V>(bytes + i * P::kBytes));
        if (i < elements)
          V::store_first(out + i, elements - i,
                         P::template load_first<V>(bytes + i * P::kBytes, elements - i));
      },
      [&](auto blocks) {
        using Q = decltype(blocks);
        for (std::int64_t i = 0; i < elements; i += Q::kElements, bytes += Q::kBytes)
          Q::template each<V>(bytes, [&](int unit, typename V::Unit values) {
            float* at = out + i + 16 * unit;
            for (auto part : values.part) {
              V::store(at, part);
              at += V::kLanes;
            }
          });
      });
}

}  // namespace plimsoll::kernels
