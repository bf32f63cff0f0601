// SPDX-License-Identifier: Apache-2.0
#include "kernels/to_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"

namespace plimsoll::kernels {
namespace {

std::vector<float> normal_numbers(std::size_t n, float scale) {
  std::mt19937 random(7);
  std::vector<float> values(n);
  for (float& value : values) {
    float sum = -6;  // twelve uniform numbers: std's distributions differ between libraries
    for (int i = 0; i < 12; ++i) sum += static_cast<float>(random()) * 0x1p-32f;
    value = sum * scale;
  }
  return values;
}

std::vector<float> there_and_back(DType dtype, const std::vector<float>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::vector<std::byte> blocks(static_cast<std::size_t>(stored_bytes(dtype, n)->value));
  EXPECT_TRUE(to_blocks(dtype, values.data(), n, blocks.data()));
  std::vector<float> back(values.size());
  kernels_for(Isa::kScalar).to_float(dtype, blocks.data(), n, back.data());
  return back;
}

double relative_error(const std::vector<float>& values, const std::vector<float>& back) {
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]), error = value - static_cast<double>(back[i]);
    errors += error * error;
    squares += value * value;
  }
  return std::sqrt(errors / squares);
}

// The table of docs/formulas/load_quantization.md, within what 64,000 numbers scatter.
TEST(ToBlocks, LeavesTheErrorThatThePageTells) {
  for (const float scale : {1e-3f, 0.02f, 40.0f}) {
    const auto values = normal_numbers(64'000, scale);
    EXPECT_NEAR(relative_error(values, there_and_back(DType::kQ8_0, values)), 0.0054, 0.0003) << scale;
    EXPECT_NEAR(relative_error(values, there_and_back(DType::kQ4_1, values)), 0.0724, 0.0015) << scale;
  }
}

TEST(ToBlocks, NumbersOfTheGridComeBackAsTheyWere) {
  std::vector<float> eight(64), four(64);
  for (std::size_t i = 0; i < 64; ++i) {
    eight[i] = (static_cast<float>(i % 32) * 8.0f - 127.0f) * 0.125f;
    four[i] = static_cast<float>(i * 7 % 16) * 0.25f - 3.0f;
  }
  eight[0] = eight[32] = -127 * 0.125f;
  EXPECT_EQ(there_and_back(DType::kQ8_0, eight), eight);
  EXPECT_EQ(there_and_back(DType::kQ4_1, four), four);
}

TEST(ToBlocks, ZerosEqualNumbersAndTinyOnesAreTaken) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_1}) {
    for (const float value : {0.0f, -0.0f, 0.5f, -2.0f}) {
      const std::vector<float> equal(32, value);
      for (const float back : there_and_back(dtype, equal))
        EXPECT_NEAR(back, value, 1e-3f * std::fabs(value));
    }
    for (const float tiny : {1e-9f, 1e-40f})
      for (const float back : there_and_back(dtype, std::vector<float>(32, tiny)))
        EXPECT_NEAR(back, tiny, 3e-8f);
  }
}

TEST(ToBlocks, RefusesWhatHasNoScale) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  std::byte out[64];
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_1})
    for (const float bad : {kNan, kInf, -kInf, 3e38f, -1e9f}) {
      std::vector<float> values(32, 1.0f);
      values[13] = bad;
      EXPECT_FALSE(to_blocks(dtype, values.data(), 32, out)) << bad;
    }
  const std::vector<float> sound(64, 1.0f);
  EXPECT_FALSE(to_blocks(DType::kQ8_0, sound.data(), 33, out));
  EXPECT_FALSE(to_blocks(DType::kQ4_0, sound.data(), 32, out));
}

}  // namespace
}  // namespace plimsoll::kernels
