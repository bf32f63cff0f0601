// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/golden_rows.h"

namespace plimsoll::kernels {
namespace {

struct Weights {
  DType dtype;
  std::int64_t rows, columns;
  std::vector<std::byte> stored;  // [rows, columns], one byte behind the start of the buffer

  const std::byte* data() const { return stored.data() + 1; }
};

class Matmul : public EveryIsa {
 protected:
  // Blocks of real quantizers in random order; plain types from normal numbers.
  Weights random_weights(DType dtype, std::int64_t rows, std::int64_t columns) {
    const DTypeInfo& row = info(dtype);
    Weights weights{dtype, rows, columns, {}};
    weights.stored.resize(1 +
                          static_cast<std::size_t>(rows * columns / row.block_elements * row.block_bytes));
    std::byte* at = weights.stored.data() + 1;
    if (!is_block_quantized(dtype)) {
      for (const float value : random_floats(rows * columns)) {
        std::uint32_t word = bits(value);
        if (dtype == DType::kBF16) word >>= 16;
        if (dtype == DType::kF16) word = 0x3000 + word % 0x1000;  // 0.125 up to 4
        std::memcpy(at, &word, static_cast<std::size_t>(row.block_bytes));
        at += row.block_bytes;
      }
      return weights;
    }
    const std::vector<std::byte> blocks = random_blocks(dtype, rows * columns, random_);
    std::memcpy(at, blocks.data(), blocks.size());
    return weights;
  }

  std::vector<float> multiply(const Weights& w, const std::vector<float>& x, std::int64_t tokens,
                              std::int64_t row_begin, std::int64_t row_end) const {
    const std::int64_t stride = w.rows + 3;
    std::vector<float> out(static_cast<std::size_t>(tokens * stride), -77.0f);
    std::vector<float> scratch(static_cast<std::size_t>(kScratchRows * w.columns));
    kernels().matmul(w.dtype, w.data(), w.columns, row_begin, row_end, x.data(), tokens, out.data(), stride,
                     scratch.data());
    return out;
  }

  void expect_close_to_double(const Weights& w, const std::vector<float>& x, std::int64_t tokens) const {
    const auto out = multiply(w, x, tokens, 0, w.rows);
    std::vector<float> widened(static_cast<std::size_t>(w.rows * w.columns));
    kernels_for(Isa::kScalar).to_float(w.dtype, w.data(), w.rows * w.columns, widened.data());
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t row = 0; row < w.rows; ++row) {
        double sum = 0, magnitude = 0;
        for (std::int64_t k = 0; k < w.columns; ++k) {
          const double product = static_cast<double>(x[static_cast<std::size_t>(token * w.columns + k)]) *
                                 static_cast<double>(widened[static_cast<std::size_t>(row * w.columns + k)]);
          sum += product;
          magnitude += std::abs(product);
        }
        // Random rounding errors of 2^-24 per step grow with the root of the chain of at most 1536/8 steps:
        // 14 * 2^-24 < 1e-6, as a share of the sum of magnitudes.
        ASSERT_NEAR(out[static_cast<std::size_t>(token * (w.rows + 3) + row)], sum, 1e-6 * magnitude + 1e-30)
            << name(w.dtype) << " token " << token << " row " << row;
      }
      for (std::int64_t beyond = 0; beyond < 3; ++beyond)
        ASSERT_EQ(out[static_cast<std::size_t>(token * (w.rows + 3) + w.rows + beyond)], -77.0f);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Matmul, ::testing::ValuesIn(available_isas()), isa_name);

const std::vector<DType> kAll{
    DType::kF32,   DType::kF16,    DType::kBF16,  DType::kQ4_0,  DType::kQ4_1,   DType::kQ5_0, DType::kQ5_1,
    DType::kQ8_0,  DType::kQ2K,    DType::kQ3K,   DType::kQ4K,   DType::kQ5K,    DType::kQ6K,  DType::kIQ1S,
    DType::kIQ1M,  DType::kIQ2XXS, DType::kIQ2XS, DType::kIQ2S,  DType::kIQ3XXS, DType::kIQ3S, DType::kIQ4NL,
    DType::kIQ4XS, DType::kTQ1_0,  DType::kTQ2_0, DType::kMXFP4, DType::kNVFP4};

TEST_P(Matmul, AgreesWithDoubles) {
  for (const DType dtype : kAll) {
    ASSERT_TRUE(can_read(dtype));
    const std::int64_t columns = 3 * info(dtype).block_elements + (info(dtype).block_elements == 1 ? 98 : 0);
    const Weights w = random_weights(dtype, 13, columns);
    for (const std::int64_t tokens : {1, 2, 7})
      expect_close_to_double(w, random_floats(tokens * columns), tokens);
  }
}

TEST_P(Matmul, AgreesWithDoublesAtModelShapes) {
  const Weights w = random_weights(DType::kQ4_1, 24, 1536);
  expect_close_to_double(w, random_floats(100 * 1536), 100);
  expect_close_to_double(random_weights(DType::kBF16, 9, 576), random_floats(576), 1);
}

TEST_P(Matmul, PlainTypesTakeAnyNumberOfColumns) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16})
    for (std::int64_t columns = 1; columns < 40; ++columns) {
      const Weights w = random_weights(dtype, 5, columns);
      for (const std::int64_t tokens : {1, 4})
        expect_close_to_double(w, random_floats(tokens * columns), tokens);
    }
}

TEST_P(Matmul, ATokenHasTheSameBitsAloneAndAmongOthers) {
  for (const DType dtype : kAll) {
    const std::int64_t columns = info(dtype).block_elements == 1 ? 101 : 2 * info(dtype).block_elements;
    const Weights w = random_weights(dtype, 11, columns);
    const std::vector<float> x = random_floats(100 * columns);
    std::vector<std::vector<float>> alone;
    for (std::int64_t token = 0; token < 100; ++token)
      alone.push_back(
          multiply(w, {x.begin() + token * columns, x.begin() + (token + 1) * columns}, 1, 0, 11));
    for (const std::int64_t tokens : {2, 3, 4, 5, 6, 7, 13, 100}) {
      const auto together = multiply(w, x, tokens, 0, 11);
      for (std::int64_t token = 0; token < tokens; ++token)
        for (std::size_t row = 0; row < 11; ++row)
          ASSERT_EQ(bits(together[static_cast<std::size_t>(token) * 14 + row]),
                    bits(alone[static_cast<std::size_t>(token)][row]))
              << name(dtype) << ": token " << token << " of " << tokens << ", row " << row;
    }
  }
}

TEST_P(Matmul, AnySplitOfRowsHasTheSameBits) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ4_1, DType::kQ6K})
    for (const std::int64_t tokens : {1, 8}) {
      const Weights w = random_weights(dtype, 21, 256);
      const std::vector<float> x = random_floats(tokens * 256);
      const auto whole = multiply(w, x, tokens, 0, 21);
      for (std::int64_t split = 0; split <= 21; ++split) {
        const auto front = multiply(w, x, tokens, 0, split), back = multiply(w, x, tokens, split, 21);
        for (std::size_t i = 0; i < whole.size(); ++i) {
          const auto row = static_cast<std::int64_t>(i % 24);
          ASSERT_EQ(bits(front[i]), row < split ? bits(whole[i]) : bits(-77.0f)) << split << " " << i;
          ASSERT_EQ(bits(back[i]), row >= split ? bits(whole[i]) : bits(-77.0f)) << split << " " << i;
        }
      }
    }
}

TEST_P(Matmul, NothingIsWrittenForNoRowsOrNoTokens) {
  const Weights w = random_weights(DType::kQ8_0, 4, 64);
  const std::vector<float> x = random_floats(3 * 64);
  for (const float value : multiply(w, x, 3, 2, 2)) ASSERT_EQ(value, -77.0f);
  EXPECT_TRUE(multiply(w, x, 0, 0, 4).empty());
}

TEST_P(Matmul, NansAndInfinitiesStayInTheirToken) {
  const Weights w = random_weights(DType::kQ4_0, 6, 64);
  std::vector<float> x = random_floats(8 * 64);
  const auto clean = multiply(w, x, 8, 0, 6);
  x[3 * 64 + 5] = std::numeric_limits<float>::quiet_NaN();
  const auto out = multiply(w, x, 8, 0, 6);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (i / 9 == 3 && i % 9 < 6)
      EXPECT_TRUE(std::isnan(out[i]));
    else
      EXPECT_EQ(bits(out[i]), bits(clean[i]));
}

}  // namespace
}  // namespace plimsoll::kernels
