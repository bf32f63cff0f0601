// SPDX-License-Identifier: Apache-2.0
// How are inputs rounded to eight bits? Plain code, the same for every instruction set; all of it is
// `static`, as stored.h says why. Pure functions over arrays of the caller.
#pragma once

#include "kernels/kernels.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {

static inline void sum_halves(Int8Block* block) {
  for (int half = 0; half < 2; ++half) {
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += block->codes[16 * half + i];
    block->sums[half] = static_cast<std::int16_t>(sum);
  }
}

static inline void round_block(const float* values, Int8Block* out) {
  out->scale = int8_of_floats(values, kInt8Block, out->codes);
  sum_halves(out);
}

/// The upper and the lower digit of whole numbers up to kLargestOfTwo.
static inline void round_block_to_two(const float* values, Int8Block* upper, Int8Block* lower) {
  std::uint32_t largest = 0;
  for (int i = 0; i < kInt8Block; ++i) {
    const std::uint32_t magnitude = load_as<std::uint32_t>(values + i) & 0x7fffffffu;
    largest = magnitude > largest ? magnitude : largest;
  }
  const bool is_finite = largest < 0x7f800000u;
  const bool is_zero = float_of_bits(largest) < 0x1p-111f;  // its inverse would be no number
  constexpr auto kLargest = static_cast<float>(kLargestOfTwo);
  const float inverse = is_finite && !is_zero ? kLargest / float_of_bits(largest) : 0.0f;
  constexpr float kNearest = 0x1.8p23f;  // leaves the nearest integer in the lowest bits
  for (int i = 0; i < kInt8Block; ++i) {
    const float code = ((is_finite ? values[i] : 0.0f) * inverse + kNearest) - kNearest;
    const float digit = (code * (1.0f / kDigitOfTwo) + kNearest) - kNearest;
    upper->codes[i] = static_cast<std::int8_t>(digit);
    lower->codes[i] = static_cast<std::int8_t>(code - kDigitOfTwo * digit);
  }
  for (Int8Block* block : {upper, lower}) {
    block->scale = !is_finite ? float_of_bits(0x7fc00000u)
                   : is_zero  ? 0.0f
                              : float_of_bits(largest) / kLargest;
    sum_halves(block);
  }
}

/// Kernels::to_int8_blocks.
static inline void round_blocks(const float* values, std::int64_t blocks, int planes, Int8Block* out) {
  for (std::int64_t block = 0; block < blocks; ++block, values += kInt8Block)
    if (planes == 2)
      round_block_to_two(values, out + block, out + blocks + block);
    else
      round_block(values, out + block);
}

}  // namespace plimsoll::kernels
