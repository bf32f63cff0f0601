// SPDX-License-Identifier: Apache-2.0
// What floats do stored numbers stand for? The plain form, one block type after the other, for every
// instruction set to be held against. Pure function; the caller owns both buffers.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace plimsoll::kernels {

/// out[i] = number i of `stored`, for a type that can_read(). `elements` fills whole blocks. out: [elements]
/// Source: docs/formats/gguf_blocks.md.
void scalar_to_float(DType dtype, const std::byte* stored, std::int64_t elements, float* out);

}  // namespace plimsoll::kernels
