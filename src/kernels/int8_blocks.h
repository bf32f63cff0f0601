// SPDX-License-Identifier: Apache-2.0
// How are inputs rounded to eight bits? Plain code, the same for every instruction set; all of it is
// `static`, as stored.h says why. Pure functions over arrays of the caller.
#pragma once

#include "kernels/kernels.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {

static inline void round_block(const float* values, Int8Block* out) {
  out->scale = int8_of_floats(values, kInt8Block, out->codes);
  for (int half = 0; half < 2; ++half) {
    int sum = 0;
    for (int i = 0; i < 16; ++i) sum += out->codes[16 * half + i];
    out->sums[half] = static_cast<std::int16_t>(sum);
  }
}

/// Kernels::to_int8_blocks.
static inline void round_blocks(const float* values, std::int64_t blocks, int planes, Int8Block* out) {
  for (std::int64_t block = 0; block < blocks; ++block, values += kInt8Block) {
    round_block(values, out + block);
    if (planes < 2) continue;
    float left[kInt8Block];
    for (int i = 0; i < kInt8Block; ++i)
      left[i] = values[i] - out[block].scale * static_cast<float>(out[block].codes[i]);
    round_block(left, out + blocks + block);
  }
}

}  // namespace plimsoll::kernels
