// SPDX-License-Identifier: Apache-2.0
#include "kernels/to_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

constexpr int kBlock = 32;
constexpr float kRounder = 0x1.8p23f;  // adding and taking it away leaves the nearest integer, ties to even
/// Spans that q4_1 tries, in steps beyond the 15 that lie between the block's ends.
constexpr float kSpans[] = {-1.0f, -0.5f, 0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 2.5f, 3.0f};
constexpr float kLargestHalf = 65504.0f;

/// Round to nearest even; beyond the largest half it is infinite.
std::uint16_t half_of_float(float value) {
  const auto bits = load_as<std::uint32_t>(&value);
  const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude <
      0x38800000u) {  // below 2^-14: numbers from 1/2 on are multiples of 2^-24, as subnormals are
    const float sum = float_of_bits(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (load_as<std::uint32_t>(&sum) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded >> 13) - (112u << 10)));
}

float nearest(float value) {
  return (value + kRounder) - kRounder;
}

bool are_finite(const float* x) {
  std::uint32_t largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, load_as<std::uint32_t>(x + i) & 0x7fffffffu);
  return largest < 0x7f800000u;
}

bool write_q8_0(const float* x, std::byte* out) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(x[i]));
  const std::uint16_t scale = half_of_float(largest / 127.0f);
  const float step = float_of_half(scale);
  if (step > kLargestHalf) return false;
  std::memcpy(out, &scale, sizeof scale);
  // The half may be a little less than what was rounded to it.
  for (int i = 0; i < kBlock; ++i) {
    const float code = step > 0 ? std::clamp(nearest(x[i] / step), -127.0f, 127.0f) : 0.0f;
    out[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(code));
  }
  return true;
}

/// A scale and a minimum as stored, the codes for them, and what they miss.
struct Affine {
  std::uint16_t scale = 0, minimum = 0;
  float codes[kBlock] = {};
  float error = 0;

  float step() const { return float_of_half(scale); }
  float least() const { return float_of_half(minimum); }
};

void choose_codes(const float* x, float step, float least, float* codes) {
  const float inverse = step > 0 ? 1.0f / step : 0.0f;
  for (int i = 0; i < kBlock; ++i) codes[i] = std::clamp(nearest((x[i] - least) * inverse), 0.0f, 15.0f);
}

/// Rounds scale and minimum to halves, then chooses the codes for these.
Affine settled(const float* x, float step, float least) {
  Affine made{.scale = half_of_float(step), .minimum = half_of_float(least)};
  choose_codes(x, made.step(), made.least(), made.codes);
  for (int i = 0; i < kBlock; ++i) {
    const float missed = x[i] - (made.codes[i] * made.step() + made.least());
    made.error += missed * missed;
  }
  return made;
}

/// The least squares' scale and minimum for codes around the middle of the block.
Affine fitted(const float* x, float step, float middle) {
  float codes[kBlock];
  choose_codes(x, step, middle - 7.5f * step, codes);
  float sum_c = 0, sum_cc = 0, sum_x = 0, sum_cx = 0;
  for (int i = 0; i < kBlock; ++i) {
    const float offset = x[i] - middle;  // small sums lose less
    sum_c += codes[i];
    sum_cc += codes[i] * codes[i];
    sum_x += offset;
    sum_cx += codes[i] * offset;
  }
  const float spread = kBlock * sum_cc - sum_c * sum_c;
  if (!(spread > 0)) return settled(x, step, middle - 7.5f * step);
  const float slope = (kBlock * sum_cx - sum_x * sum_c) / spread;
  return settled(x, slope, middle + (sum_x - slope * sum_c) / kBlock);
}

bool write_q4_1(const float* x, std::byte* out) {
  const auto [low, high] = std::minmax_element(x, x + kBlock);
  const float least = *low, most = *high, middle = least / 2 + most / 2, span = most - least;
  Affine best = settled(x, span / 15.0f, least);
  for (const float more : kSpans) {
    const Affine made = fitted(x, span / (15.0f + more), middle);
    if (made.error < best.error) best = made;
  }
  if (!(std::fabs(best.step()) <= kLargestHalf && std::fabs(best.least()) <= kLargestHalf)) return false;
  std::memcpy(out, &best.scale, sizeof best.scale);
  std::memcpy(out + 2, &best.minimum, sizeof best.minimum);
  for (int i = 0; i < kBlock / 2; ++i)
    out[4 + i] = static_cast<std::byte>(static_cast<int>(best.codes[i]) |
                                        static_cast<int>(best.codes[i + kBlock / 2]) << 4);
  return true;
}

}  // namespace

bool can_write(DType dtype) {
  return dtype == DType::kQ8_0 || dtype == DType::kQ4_1;
}

bool to_blocks(DType dtype, const float* values, std::int64_t elements, std::byte* out) {
  bool is_sound = can_write(dtype) && elements % kBlock == 0;
  for (std::int64_t at = 0; at < elements && is_sound; at += kBlock, out += info(dtype).block_bytes)
    is_sound = are_finite(values + at) &&
               (dtype == DType::kQ8_0 ? write_q8_0(values + at, out) : write_q4_1(values + at, out));
  return is_sound;
}

}  // namespace plimsoll::kernels
