// SPDX-License-Identifier: Apache-2.0
// What floats do stored blocks stand for, 16 at a time? Each block type has each<V>(block, f), which calls
// f(unit, values) for its units of 16 elements in rising order. Codes are sorted out in 128-bit registers,
// the same for every V (vec_*.h); only the widening differs. Everything is static or depends on V, so that no
// copy is shared between instruction sets. Source: docs/formats/gguf_blocks.md.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "base/dtype.h"
#include "kernels/scalar_code_books.h"
#include "kernels/simd_codes.h"

namespace plimsoll::kernels {

struct Q4_0 {
  static constexpr int kElements = 32, kBytes = 18;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    use_nibbles<V>(Levels<V, Signed4>(V::set1(half_at(block))), block + 2, 0, use);
  }
};

struct Q4_1 {
  static constexpr int kElements = 32, kBytes = 20;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const Levels<V, Unsigned4> levels(V::set1(half_at(block)), V::set1(half_at(block + 2)));
    use_nibbles<V>(levels, block + 4, 0, use);
  }
};

struct Q5_0 {
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
  static constexpr int kElements = 32, kBytes = 34;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const auto d = V::set1(half_at(block));
    use(0, scaled<V>(V::widen_i8(bytes_at(block + 2)), d));
    use(1, scaled<V>(V::widen_i8(bytes_at(block + 18)), d));
  }
};

struct Q2K {
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

/// The scales and minima of q4_k and q5_k, times d and -dmin.
struct StepsAndMinima {
  Steps step, minimum;
};
template <class V>
static PLIMSOLL_INLINE StepsAndMinima steps_and_minima(const Byte* block) {
  const __m128i scales = bytes_of(unpack_k4_scales(block + 4));
  const __m128i minima = _mm_unpackhi_epi64(scales, scales);
  return {steps<V>(V::widen_u8(scales), V::set1(half_at(block))),
          steps<V>(V::widen_u8(minima), V::set1(-half_at(block + 2)))};
}

struct Q4K {
  static constexpr int kElements = 256, kBytes = 144;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const StepsAndMinima of = steps_and_minima<V>(block);
#pragma GCC unroll 4
    for (int pair = 0; pair < 4; ++pair) {  // of groups: the low and the high nibbles of 32 bytes
      const int even = 2 * pair, odd = even + 1;
      const Levels<V, Unsigned4> low(V::set1(of.step.at[even]), V::set1(of.minimum.at[even]));
      const Levels<V, Unsigned4> high(V::set1(of.step.at[odd]), V::set1(of.minimum.at[odd]));
      const auto front = V::nibbles(bytes_at(block + 16 + 32 * pair));
      const auto back = V::nibbles(bytes_at(block + 32 + 32 * pair));
      use(4 * pair, low.of_low(front));
      use(4 * pair + 1, low.of_low(back));
      use(4 * pair + 2, high.of_high(front));
      use(4 * pair + 3, high.of_high(back));
    }
  }
};

struct Q5K {
  static constexpr int kElements = 256, kBytes = 176;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const StepsAndMinima of = steps_and_minima<V>(block);
#pragma GCC unroll 16
    for (int unit = 0; unit < 16; ++unit) {
      const int group = unit / 2;
      const __m128i bytes = bytes_at(block + 48 + 32 * (unit / 4) + 16 * (unit % 2));
      const __m128i low = group % 2 ? high_nibbles(bytes) : low_nibbles(bytes);
      const __m128i fifth = where_bit(bytes_at(block + 16 + 16 * (unit % 2)), group, 16);
      use(unit, scaled<V>(V::widen_u8(_mm_or_si128(low, fifth)), V::set1(of.step.at[group]),
                          V::set1(of.minimum.at[group])));
    }
  }
};

struct Q6K {
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

struct IQ4NL {
  static constexpr int kElements = 32, kBytes = 18;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    use_nibbles<V>(Levels<V, Iq4>(V::set1(half_at(block))), block + 2, 0, use);
  }
};

struct IQ4XS {
  static constexpr int kElements = 256, kBytes = 136;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    const float d = half_at(block);
    for (int group = 0; group < 8; ++group) {
      const float step = d * static_cast<float>(iq4_xs_scale(block, group));
      use_nibbles<V>(Levels<V, Iq4>(V::set1(step)), block + 8 + 16 * group, 2 * group, use);
    }
  }
};

struct MXFP4 {
  static constexpr int kElements = 32, kBytes = 17;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    use_nibbles<V>(Levels<V, Fp4Doubled>(V::set1(half_of_e8m0(block[0]))), block + 1, 0, use);
  }
};

// Types that are looked up element by element: the plain code reads them into a buffer.
template <void (*kRead)(const Byte*, float*), int kNumElements, int kNumBytes>
struct ReadPlainly {
  static constexpr int kElements = kNumElements, kBytes = kNumBytes;
  template <class V, class Use>
  static PLIMSOLL_INLINE void each(const Byte* block, Use use) {
    float values[kElements];
    kRead(block, values);
    const float* at = values;
    for (int unit = 0; unit < kElements / 16; ++unit) {
      typename V::Unit widened;
      for (auto& part : widened.part) {
        part = V::load(at);
        at += V::kLanes;
      }
      use(unit, widened);
    }
  }
};
using IQ2XXS = ReadPlainly<read_iq2_xxs, 256, 66>;
using IQ2XS = ReadPlainly<read_iq2_xs, 256, 74>;
using IQ2S = ReadPlainly<read_iq2_s, 256, 82>;
using IQ3XXS = ReadPlainly<read_iq3_xxs, 256, 98>;
using IQ3S = ReadPlainly<read_iq3_s, 256, 110>;
using IQ1S = ReadPlainly<read_iq1_s, 256, 50>;
using IQ1M = ReadPlainly<read_iq1_m, 256, 56>;
using TQ1_0 = ReadPlainly<read_tq1_0, 256, 54>;
using TQ2_0 = ReadPlainly<read_tq2_0, 256, 66>;
using NVFP4 = ReadPlainly<read_nvfp4, 64, 36>;

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

/// One byte each, as the cache has them. Of f8_e4m3 2^-8, and no NaN.
struct PlainE4m3 {
  static constexpr int kBytes = 1;
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* at) {
    return V::widen_e4m3(V::load_bytes(at));
  }
  template <class V>
  static PLIMSOLL_INLINE typename V::F load_first(const Byte* at, std::int64_t n) {
    return V::widen_e4m3(V::load_first_bytes(at, n));
  }
};
struct PlainI8 {
  static constexpr int kBytes = 1;
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* at) {
    return V::widen_i8(V::load_bytes(at)).part[0];
  }
  template <class V>
  static PLIMSOLL_INLINE typename V::F load_first(const Byte* at, std::int64_t n) {
    return V::widen_i8(V::load_first_bytes(at, n)).part[0];
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
    case DType::kIQ2XXS:
      return blocks(IQ2XXS{});
    case DType::kIQ2XS:
      return blocks(IQ2XS{});
    case DType::kIQ2S:
      return blocks(IQ2S{});
    case DType::kIQ3XXS:
      return blocks(IQ3XXS{});
    case DType::kIQ3S:
      return blocks(IQ3S{});
    case DType::kIQ1S:
      return blocks(IQ1S{});
    case DType::kIQ1M:
      return blocks(IQ1M{});
    case DType::kTQ1_0:
      return blocks(TQ1_0{});
    case DType::kTQ2_0:
      return blocks(TQ2_0{});
    case DType::kNVFP4:
      return blocks(NVFP4{});
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
