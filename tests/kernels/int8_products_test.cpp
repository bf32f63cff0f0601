// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/golden_rows.h"

namespace plimsoll::kernels {
namespace {

const std::vector<DType> kTypes{DType::kQ4_0,  DType::kQ4_1,  DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                                DType::kQ2K,   DType::kQ3K,   DType::kQ4K,  DType::kQ5K,  DType::kQ6K,
                                DType::kIQ4NL, DType::kIQ4XS, DType::kMXFP4};

class Int8Products : public EveryIsa {
 protected:
  void SetUp() override {
    if (kernels().matmul_int8) return;
    EXPECT_EQ(GetParam(), Isa::kScalar) << "every wider instruction set has products of bytes";
  }
  bool has_products() const { return kernels().matmul_int8 != nullptr; }

  std::vector<Int8Block> rounded(const std::vector<float>& values, int planes = 1) const {
    const std::size_t blocks = values.size() / 32;
    std::vector<Int8Block> result(blocks * static_cast<std::size_t>(planes));
    kernels().to_int8_blocks(values.data(), static_cast<std::int64_t>(blocks), planes, result.data());
    return result;
  }

  /// out: [tokens, rows + 3], with -77 where nothing is to be written.
  std::vector<float> multiply(DType dtype, const std::vector<std::byte>& w, std::int64_t columns,
                              std::int64_t rows, const Int8Block* x, std::int64_t tokens,
                              int planes = 1) const {
    std::vector<float> out(static_cast<std::size_t>(tokens * (rows + 3)), -77.0f);
    std::vector<float> scratch(static_cast<std::size_t>(kScratchRows * columns));
    kernels().matmul_int8(dtype, w.data(), columns, rows, x, tokens, planes, out.data(), rows + 3,
                          scratch.data());
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Int8Products, ::testing::ValuesIn(available_isas()), isa_name);

TEST(Int8ProductsOf, TheTypesThatAreWholeNumbersTimesAScale) {
  for (const DType dtype : kTypes) EXPECT_TRUE(has_int8_products(dtype)) << name(dtype);
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kIQ1S, DType::kIQ2XXS, DType::kTQ1_0})
    EXPECT_FALSE(has_int8_products(dtype)) << name(dtype);
}

TEST_P(Int8Products, InputsAreRoundedToTheirBlocksScale) {
  if (!has_products()) return;
  auto values = random_floats(96, 3.0f);
  for (std::size_t i = 32; i < 64; ++i) values[i] = 0;
  values[70] = std::numeric_limits<float>::infinity();
  const auto blocks = rounded(values);
  float largest = 0;
  for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[i]));
  EXPECT_FLOAT_EQ(blocks[0].scale, largest / 127);
  int sums[2] = {0, 0};
  for (std::size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(static_cast<float>(blocks[0].codes[i]) * blocks[0].scale, values[i],
                0.5001f * blocks[0].scale);
    sums[i / 16] += blocks[0].codes[i];
  }
  EXPECT_EQ(blocks[0].sums[0], sums[0]);
  EXPECT_EQ(blocks[0].sums[1], sums[1]);
  EXPECT_EQ(blocks[1].scale, 0);
  EXPECT_TRUE(std::isnan(blocks[2].scale));
}

// The rounded inputs times the numbers that the format defines, in doubles.
TEST_P(Int8Products, AgreeWithDoublesForBlocksOfRealQuantizers) {
  if (!has_products()) return;
  for (const DType dtype : kTypes) {
    const std::int64_t columns = 3 * info(dtype).block_elements, rows = 13, tokens = 3;
    const std::vector<std::byte> w = random_blocks(dtype, rows * columns, random_);
    std::vector<float> widened(static_cast<std::size_t>(rows * columns));
    kernels_for(Isa::kScalar).to_float(dtype, w.data(), rows * columns, widened.data());
    const auto x = rounded(random_floats(tokens * columns));
    const auto out = multiply(dtype, w, columns, rows, x.data(), tokens);
    for (std::int64_t token = 0; token < tokens; ++token) {
      const float* const results = out.data() + token * (rows + 3);
      for (std::int64_t row = 0; row < rows; ++row) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < columns; ++k) {
          const Int8Block& block = x[static_cast<std::size_t>((token * columns + k) / 32)];
          const double product = static_cast<double>(block.scale) * static_cast<double>(block.codes[k % 32]) *
                                 static_cast<double>(widened[static_cast<std::size_t>(row * columns + k)]);
          sum += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(static_cast<double>(results[row]), sum, 1e-6 * magnitude)
            << name(dtype) << " row " << row;
      }
      for (std::int64_t beyond = rows; beyond < rows + 3; ++beyond) ASSERT_EQ(results[beyond], -77.0f);
    }
  }
}

TEST_P(Int8Products, TwoPlanesHoldAnInputMoreFinely) {
  if (!has_products()) return;
  const std::int64_t columns = 576, rows = 5, tokens = 2;
  const std::vector<std::byte> w = random_blocks(DType::kQ4_0, rows * columns, random_);
  std::vector<float> widened(static_cast<std::size_t>(rows * columns));
  kernels_for(Isa::kScalar).to_float(DType::kQ4_0, w.data(), rows * columns, widened.data());
  const auto values = random_floats(tokens * columns);
  std::vector<Int8Block> x;
  for (std::int64_t token = 0; token < tokens; ++token)
    for (const Int8Block& block :
         rounded({values.begin() + token * columns, values.begin() + (token + 1) * columns}, 2))
      x.push_back(block);
  const auto out = multiply(DType::kQ4_0, w, columns, rows, x.data(), tokens, 2);
  for (std::int64_t token = 0; token < tokens; ++token)
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < columns; ++k) {
        const double product = static_cast<double>(values[static_cast<std::size_t>(token * columns + k)]) *
                               static_cast<double>(widened[static_cast<std::size_t>(row * columns + k)]);
        sum += product;
        magnitude += std::abs(product);
      }
      // One plane is off by up to 1 / 254 of a block's largest number, two by 1 / 65,024.
      EXPECT_NEAR(static_cast<double>(out[static_cast<std::size_t>(token * (rows + 3) + row)]), sum,
                  4e-5 * magnitude);
    }
}

// All bytes at their ends: sums of 16 bits would overflow first here.
TEST_P(Int8Products, TheLargestCodesAreExact) {
  if (!has_products()) return;
  for (const int code : {-128, 127}) {
    std::vector<std::byte> w(34, static_cast<std::byte>(code));
    w[0] = std::byte{0x00};
    w[1] = std::byte{0x3c};  // 1.0
    for (const float input : {-1.0f, 1.0f}) {
      const auto x = rounded(std::vector<float>(32, 127 * input));
      EXPECT_EQ(multiply(DType::kQ8_0, w, 32, 1, x.data(), 1)[0],
                static_cast<float>(code) * 127 * 32 * input);
    }
  }
}

TEST_P(Int8Products, ATokenHasTheSameBitsAloneAmongOthersAndInAnySplitOfRows) {
  if (!has_products()) return;
  for (const DType dtype : kTypes) {
    const std::int64_t columns = 2 * info(dtype).block_elements, rows = 21, tokens = 7;
    const std::vector<std::byte> w = random_blocks(dtype, rows * columns, random_);
    const auto x = rounded(random_floats(tokens * columns));
    const auto together = multiply(dtype, w, columns, rows, x.data(), tokens);
    const std::size_t row_bytes = w.size() / static_cast<std::size_t>(rows);
    for (std::int64_t token = 0; token < tokens; ++token)
      for (const std::int64_t split : {std::int64_t{1}, std::int64_t{5}, std::int64_t{8}, rows}) {
        const Int8Block* const alone = x.data() + token * columns / 32;
        const std::vector<std::byte> back(w.begin() + static_cast<std::ptrdiff_t>(row_bytes) * split,
                                          w.end());
        auto parts = multiply(dtype, w, columns, split, alone, 1);
        parts.resize(static_cast<std::size_t>(split));
        if (split < rows)
          for (const float value : multiply(dtype, back, columns, rows - split, alone, 1))
            parts.push_back(value);
        for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
          ASSERT_EQ(bits(parts[row]), bits(together[static_cast<std::size_t>(token * (rows + 3)) + row]))
              << name(dtype) << " token " << token << " row " << row;
      }
  }
}

TEST_P(Int8Products, EveryProcessorHasTheSameBits) {
  if (!has_products()) return;
  const Kernels& narrow = kernels_for(Isa::kAvx2);
  for (const DType dtype : kTypes) {
    const std::int64_t columns = info(dtype).block_elements;
    const std::vector<std::byte> w = random_blocks(dtype, 8 * columns, random_);
    const auto x = rounded(random_floats(columns));
    std::vector<float> expected(8), scratch(static_cast<std::size_t>(kScratchRows * columns));
    narrow.matmul_int8(dtype, w.data(), columns, 8, x.data(), 1, 1, expected.data(), 8, scratch.data());
    const auto found = multiply(dtype, w, columns, 8, x.data(), 1);
    for (std::size_t row = 0; row < 8; ++row) EXPECT_EQ(bits(found[row]), bits(expected[row])) << name(dtype);
  }
}

}  // namespace
}  // namespace plimsoll::kernels
