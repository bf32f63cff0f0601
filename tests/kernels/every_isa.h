// SPDX-License-Identifier: Apache-2.0
// The fixture of tests that every instruction set of this machine has to pass.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace plimsoll::kernels {

class EveryIsa : public ::testing::TestWithParam<Isa> {
 protected:
  const Kernels& kernels() const { return kernels_for(GetParam()); }

  /// Normal numbers, the same for every run and machine.
  std::vector<float> random_floats(std::int64_t n, float scale = 1.0f) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) {
      float sum = -6;  // twelve uniform numbers: std's distributions differ between libraries
      for (int i = 0; i < 12; ++i) sum += static_cast<float>(random_()) * 0x1p-32f;
      value = sum * scale;
    }
    return values;
  }

  std::mt19937 random_{20};
};

inline std::string isa_name(const ::testing::TestParamInfo<Isa>& isa) {
  return std::string(to_string(isa.param));
}

inline std::uint32_t bits(float value) {
  std::uint32_t result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

}  // namespace plimsoll::kernels
