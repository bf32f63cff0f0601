// SPDX-License-Identifier: Apache-2.0
// How are the bits of half-precision numbers and block scales read? Shared by every instruction set, so all
// of it is `static`: a copy built with wider instructions must never serve a processor that lacks them. Pure
// functions. Source: docs/formats/gguf_blocks.md.
#pragma once

#include <cstdint>
#include <cstring>

namespace plimsoll::kernels {

/// Any stored number at any alignment.
template <class T>
static inline T load_as(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

static inline float float_of_bits(std::uint32_t bits) {
  return load_as<float>(&bits);
}

/// IEEE half to float, exact. A signalling NaN becomes quiet, as the vcvtph2ps instruction does.
static inline float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return float_of_bits(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13) |
                         (magnitude > 0x7c00u ? 0x400000u : 0u));
  if (magnitude < 0x400u) {  // subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  return float_of_bits(sign | ((magnitude << 13) + (112u << 23)));
}

static inline float float_of_bf16(std::uint16_t bits) {
  return float_of_bits(static_cast<std::uint32_t>(bits) << 16);
}

/// Round to nearest even; NaN stays NaN.
static inline std::uint16_t bf16_of_float(float value) {
  const auto bits = load_as<std::uint32_t>(&value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// Half of 2^(e - 127): mxfp4's table holds doubled values.
static inline float half_of_e8m0(std::uint8_t e) {
  return float_of_bits(e < 2 ? 0x00200000u << e : static_cast<std::uint32_t>(e - 1) << 23);
}

/// The eight 6-bit scales and minima of q4_k and q5_k, packed in 12 bytes.
struct ScalesAndMinima {
  std::uint8_t scale[8];
  std::uint8_t minimum[8];
};
static inline ScalesAndMinima unpack_k4_scales(const std::uint8_t* packed) {
  ScalesAndMinima result;
  for (int i = 0; i < 4; ++i) {
    result.scale[i] = packed[i] & 63;
    result.minimum[i] = packed[i + 4] & 63;
    result.scale[i + 4] = static_cast<std::uint8_t>((packed[i + 8] & 15) | ((packed[i] >> 6) << 4));
    result.minimum[i + 4] = static_cast<std::uint8_t>((packed[i + 8] >> 4) | ((packed[i + 4] >> 6) << 4));
  }
  return result;
}

/// The sixteen 6-bit scales of q3_k, packed in 12 bytes, without their bias of 32.
struct ThreeBitScales {
  std::int8_t scale[16];
};
static inline ThreeBitScales unpack_k3_scales(const std::uint8_t* packed) {
  ThreeBitScales result;
  for (int i = 0; i < 16; ++i) {
    const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    const int high = (packed[8 + i % 4] >> (2 * (i / 4))) & 3;
    result.scale[i] = static_cast<std::int8_t>((low | (high << 4)) - 32);
  }
  return result;
}

/// The scale of 32 elements of iq4_xs, in [-32, 31].
static inline int iq4_xs_scale(const std::uint8_t* block, int group) {
  const auto high = load_as<std::uint16_t>(block + 2);
  const int low = (block[4 + group / 2] >> (4 * (group % 2))) & 15;
  return (low | (((high >> (2 * group)) & 3) << 4)) - 32;
}

/// What a 4-bit code of iq4_nl and iq4_xs stands for.
static constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
/// Twice the fp4 (e2m1) number of a code.
static constexpr std::int8_t kFp4DoubledValues[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                      0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace plimsoll::kernels
