// SPDX-License-Identifier: Apache-2.0
// What must stored blocks read as? Rows of the golden quantization file, each with its exact floats.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace plimsoll::kernels {

struct GoldenRows {
  std::string name;  // Q4_1.edge
  DType dtype;
  std::vector<std::byte> stored;
  std::vector<float> values;  // as the reference dequantizes `stored`
};

/// All rows of types that can_read(); a failed read is an empty list.
std::vector<GoldenRows> golden_rows();

/// Blocks of real quantizers in random order. elements: whole blocks of a type that golden_rows has.
std::vector<std::byte> random_blocks(DType dtype, std::int64_t elements, std::mt19937& random);

}  // namespace plimsoll::kernels
