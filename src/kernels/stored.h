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

/// A half of the same bits behind the sign is 2^-8 of the f8_e4m3 number: its bias is 15, not 7.
static constexpr float kHalfToE4m3 = 256.0f;

static inline bool has_e4m3_nan(const std::uint8_t* codes, std::int64_t n) {
  std::uint8_t is_found = 0;
  for (std::int64_t i = 0; i < n; ++i) is_found |= static_cast<std::uint8_t>((codes[i] & 0x7f) == 0x7f);
  return is_found != 0;
}

/// Round to nearest even, at most 448 either way; NaN stays NaN.
static inline std::uint8_t e4m3_of_float(float value) {
  constexpr std::uint32_t kLargest = 0x43e00000u, kLeastNormal = 0x3c800000u;  // 448, 2^-6
  const auto bits = load_as<std::uint32_t>(&value);
  const std::uint32_t all = bits & 0x7fffffffu;
  const std::uint32_t magnitude = all < kLargest ? all : kLargest;
  // Three bits of fraction stay, and the bias of the exponent falls from 127 to 7.
  const std::uint32_t normal = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3);
  // Numbers from 2^14 on are multiples of 2^-9, as the small ones of e4m3 are.
  const float sum = float_of_bits(magnitude < kLeastNormal ? magnitude : kLeastNormal) + 0x1p14f;
  const std::uint32_t small = load_as<std::uint32_t>(&sum) - 0x46800000u;
  const std::uint32_t code = all > 0x7f800000u ? 0x7fu : magnitude < kLeastNormal ? small : normal;
  return static_cast<std::uint8_t>((bits >> 24 & 0x80u) | code);
}

/// Whole numbers of a vector and their scale: Kernels::to_i8.
static inline float int8_of_floats(const float* values, std::int64_t n, std::int8_t* out) {
  std::uint32_t largest = 0;  // as bits, magnitudes stand in the order of the numbers, NaN above them
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t magnitude = load_as<std::uint32_t>(values + i) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  const bool is_finite = largest < 0x7f800000u;
  const bool is_zero = float_of_bits(largest) < 0x1p-119f;  // its inverse would be no number
  const float inverse = is_finite && !is_zero ? 127.0f / float_of_bits(largest) : 0.0f;
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = is_finite ? values[i] * inverse : 1.0f;
    const float sum = value + 0x1.8p23f;  // leaves the nearest integer in the lowest bits
    out[i] = static_cast<std::int8_t>(load_as<std::uint32_t>(&sum) & 0xffu);
  }
  if (!is_finite) return float_of_bits(0x7fc00000u);
  return is_zero ? 0.0f : float_of_bits(largest) / 127.0f;
}

/// Half of 2^(e - 127): mxfp4's table holds doubled values.
static inline float half_of_e8m0(std::uint8_t e) {
  return float_of_bits(e < 2 ? 0x00200000u << e : static_cast<std::uint32_t>(e - 1) << 23);
}

/// The eight 6-bit scales of q4_k and q5_k (bytes 0..7) and their eight minima (8..15), packed in 12 bytes.
struct ScaleBytes {
  std::uint32_t word[4];  // byte 0 is the lowest of word 0
};
static inline int byte_of(const ScaleBytes& scales, int i) {
  return static_cast<int>((scales.word[i / 4] >> (8 * (i % 4))) & 255u);
}
static inline ScaleBytes unpack_k4_scales(const std::uint8_t* packed) {
  // Four at a time. Of bytes 0..3 and 4..7 the low six bits are scales and minima 0..3; their high two bits
  // stand above the low and high nibbles of bytes 8..11, which are scales and minima 4..7.
  const auto a = load_as<std::uint32_t>(packed), b = load_as<std::uint32_t>(packed + 4);
  const auto c = load_as<std::uint32_t>(packed + 8);
  return {{a & 0x3f3f3f3fu, (c & 0x0f0f0f0fu) | ((a >> 2) & 0x30303030u), b & 0x3f3f3f3fu,
           ((c >> 4) & 0x0f0f0f0fu) | ((b >> 2) & 0x30303030u)}};
}

/// The sixteen 6-bit scales of q3_k, packed in 12 bytes: 0..63, 32 above what they stand for.
static inline ScaleBytes unpack_k3_scales(const std::uint8_t* packed) {
  const auto a = load_as<std::uint32_t>(packed), b = load_as<std::uint32_t>(packed + 4);
  const auto high = load_as<std::uint32_t>(packed + 8);
  return {{(a & 0x0f0f0f0fu) | ((high << 4) & 0x30303030u), (b & 0x0f0f0f0fu) | ((high << 2) & 0x30303030u),
           ((a >> 4) & 0x0f0f0f0fu) | (high & 0x30303030u),
           ((b >> 4) & 0x0f0f0f0fu) | ((high >> 2) & 0x30303030u)}};
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
