// SPDX-License-Identifier: Apache-2.0
// Expected arrays for tests: reads the F32 tensors of a small safetensors file with code that shares nothing
// with the artifact room. Trusts its input; tests only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace plimsoll::testing {

struct FloatTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major
};

/// All F32 tensors of the file by name; empty when it cannot be read.
std::map<std::string, FloatTensor> read_float_tensors(const std::string& path);

}  // namespace plimsoll::testing
