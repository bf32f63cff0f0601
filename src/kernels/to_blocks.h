// SPDX-License-Identifier: Apache-2.0
// How do floats become blocks of few bits? The rounding of weights at load; reading them back is to_float and
// matmul (kernels.h). Pure functions, the same bits on every processor. Caller owns all memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace plimsoll::kernels {

/// Block types that to_blocks writes: q8_0 and q4_1.
bool can_write(DType dtype);

/// Writes whole blocks of 32. q8_0: the scale is the block's largest magnitude / 127. q4_1: of several spans
/// around the block's own the one whose scale and minimum, fitted by least squares, leave the smallest sum
/// of squared errors. values: [elements]; out: stored_bytes(dtype, elements).
/// Returns: false when a value is not finite or a scale has no 16-bit float; `out` then holds nothing of use.
/// Source: docs/formats/gguf_blocks.md for the layout; docs/formulas/load_quantization.md for the rounding.
bool to_blocks(DType dtype, const float* values, std::int64_t elements, std::byte* out);

}  // namespace plimsoll::kernels
