// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_code_books.h"

#include <bit>

#include "kernels/code_books.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

using Byte = std::uint8_t;

constexpr float kIq2Values[4] = {8, 25, 43, 0};  // no pattern of a book holds the fourth
constexpr float kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr float kIq3SValues[8] = {1, 3, 5, 7, 9, 11, 13, 15};

float half_at(const Byte* at) {
  return float_of_half(load_as<std::uint16_t>(at));
}

float nibble_of(Byte byte, int which) {
  return static_cast<float>(which % 2 ? byte >> 4 : byte & 15);
}

// Seven signs are stored; the eighth makes the number of minus signs even.
std::uint32_t eight_signs(std::uint32_t seven) {
  return seven | static_cast<std::uint32_t>(std::popcount(seven) & 1) << 7;
}

float signed_by(float value, std::uint32_t signs, int element) {
  return (signs >> element) & 1u ? -value : value;
}

void eight(float step, std::uint32_t pattern, std::uint32_t signs, float* out) {
  for (int j = 0; j < 8; ++j) out[j] = signed_by(step * kIq2Values[(pattern >> (2 * j)) & 3u], signs, j);
}

void four(float step, const float (&values)[8], std::uint32_t pattern, std::uint32_t signs, float* out) {
  for (int j = 0; j < 4; ++j) out[j] = signed_by(step * values[(pattern >> (3 * j)) & 7u], signs, j);
}

void ternary(float step, float delta, std::uint32_t pattern, float* out) {
  for (int j = 0; j < 8; ++j) out[j] = step * (static_cast<float>((pattern >> (2 * j)) & 3u) - 1.0f + delta);
}

// iq2_xs and iq2_s: a four-bit scale for each 16 elements.
float iq2_step(float d, const Byte* scales, int unit) {
  return d * (0.5f + nibble_of(scales[unit / 2], unit)) * 0.25f;
}

// Digit n of a byte's fraction in base three, highest first.
float ternary_digit(Byte byte, int n) {
  constexpr std::uint32_t kPowers[5] = {1, 3, 9, 27, 81};
  const std::uint32_t rest = byte * kPowers[n] & 255u;
  return static_cast<float>(static_cast<int>(rest * 3 >> 8) - 1);
}

// An unsigned e4m3 number, halved: its table holds doubled values. What would be NaN stands for 0.
float half_of_ue4m3(Byte bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  if (bits == 0x7f) return 0;
  if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10f;
  return static_cast<float>(8 + fraction) * float_of_bits(static_cast<std::uint32_t>(exponent + 116) << 23);
}

}  // namespace

// d 0, then for each 32 elements four indices and a word of four times seven signs and a scale.
void read_iq2_xxs(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int group = 0; group < 8; ++group) {
    const Byte* const codes = block + 2 + 8 * group;
    const auto word = load_as<std::uint32_t>(codes + 4);
    const float step = d * (0.5f + static_cast<float>(word >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i)
      eight(step, kIq2XxsBook[codes[i]], eight_signs((word >> (7 * i)) & 127u), out + 32 * group + 8 * i);
  }
}

// d 0, 32 words of a nine-bit index and seven signs 2..65, scales 66..73.
void read_iq2_xs(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t word = load_as<std::uint16_t>(block + 2 + 2 * i);
    eight(iq2_step(d, block + 66, i / 2), kIq2XsBook[word & 511u], eight_signs(word >> 9), out + 8 * i);
  }
}

// d 0, low index bytes 2..33, signs 34..65, high index bits 66..73, scales 74..81.
void read_iq2_s(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const int high = block[66 + i / 4] >> (2 * (i % 4)) & 3;
    eight(iq2_step(d, block + 74, i / 2), kIq2SBook[block[2 + i] | high << 8], block[34 + i], out + 8 * i);
  }
}

// d 0, indices 2..65, then for each 32 elements a word of four times seven signs and a scale.
void read_iq3_xxs(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 64; ++i) {
    const auto word = load_as<std::uint32_t>(block + 66 + 4 * (i / 8));
    const float step = d * (0.5f + static_cast<float>(word >> 28)) * 0.5f;
    const std::uint32_t signs = eight_signs((word >> (7 * (i % 8 / 2))) & 127u);
    four(step, kIq3XxsValues, kIq3XxsBook[block[2 + i]], signs >> (4 * (i % 2)), out + 4 * i);
  }
}

// d 0, low index bytes 2..65, ninth index bits 66..73, signs 74..105, scales 106..109.
void read_iq3_s(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 64; ++i) {
    const int index = block[2 + i] | (block[66 + i / 8] >> (i % 8) & 1) << 8;
    const float step = d * (1.0f + 2.0f * nibble_of(block[106 + i / 16], i / 8));
    const std::uint32_t signs = static_cast<std::uint32_t>(block[74 + i / 2]) >> (4 * (i % 2));
    four(step, kIq3SValues, kIq3SBook[index], signs, out + 4 * i);
  }
}

// d 0, low index bytes 2..33, then for each 32 elements a word: four times three index bits, a scale, a sign.
void read_iq1_s(const Byte* block, float* out) {
  const float d = half_at(block);
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t word = load_as<std::uint16_t>(block + 34 + 2 * (i / 4));
    const float step = d * static_cast<float>(2 * (word >> 12 & 7u) + 1);
    const std::uint32_t index = block[2 + i] | (word >> (3 * (i % 4)) & 7u) << 8;
    ternary(step, word & 0x8000u ? -0.125f : 0.125f, kIq1Book[index], out + 8 * i);
  }
}

// Low index bytes 0..31, nibbles of three index bits and a sign 32..47, then four words of four three-bit
// scales, whose high nibbles are d.
void read_iq1_m(const Byte* block, float* out) {
  std::uint32_t d_bits = 0;
  for (int i = 0; i < 4; ++i) d_bits |= static_cast<std::uint32_t>(block[49 + 2 * i] >> 4) << (4 * i);
  const float d = float_of_half(static_cast<std::uint16_t>(d_bits));
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t scales = load_as<std::uint16_t>(block + 48 + 2 * (i / 8));
    const float step = d * static_cast<float>(2 * (scales >> (3 * (i / 2 % 4)) & 7u) + 1);
    const int high = block[32 + i / 2] >> (4 * (i % 2)) & 15;
    ternary(step, high & 8 ? -0.125f : 0.125f, kIq1Book[block[i] | (high & 7) << 8], out + 8 * i);
  }
}

// Bytes of five digits 0..47 (32 bytes, then 16: digit after digit), of four 48..51, d 52.
void read_tq1_0(const Byte* block, float* out) {
  const float d = half_at(block + 52);
  for (int i = 0; i < 160; ++i) out[i] = d * ternary_digit(block[i % 32], i / 32);
  for (int i = 0; i < 80; ++i) out[160 + i] = d * ternary_digit(block[32 + i % 16], i / 16);
  for (int i = 0; i < 16; ++i) out[240 + i] = d * ternary_digit(block[48 + i % 4], i / 4);
}

// Codes 0..63, four to a byte, d 64.
void read_tq2_0(const Byte* block, float* out) {
  const float d = half_at(block + 64);
  for (int i = 0; i < 256; ++i) {
    const int code = block[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3;
    out[i] = d * static_cast<float>(code - 1);
  }
}

// Scales of 16 elements 0..3, then eight bytes for each: low halves, then high ones.
void read_nvfp4(const Byte* block, float* out) {
  for (int i = 0; i < 64; ++i) {
    const Byte pair = block[4 + 8 * (i / 16) + i % 8];
    const int code = i % 16 < 8 ? pair & 15 : pair >> 4;
    out[i] = half_of_ue4m3(block[i / 16]) * static_cast<float>(kFp4DoubledValues[code]);
  }
}

}  // namespace plimsoll::kernels
