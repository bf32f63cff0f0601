// SPDX-License-Identifier: Apache-2.0
#include "kernels/panels.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/golden_rows.h"

namespace plimsoll::kernels {
namespace {

const std::vector<DType> kBlockTypes{DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4K, DType::kQ6K};

/// Stored rows and the same rows in panels.
struct Packed {
  DType dtype;
  std::int64_t columns, rows;
  std::vector<std::byte> stored, panels;

  std::int64_t bytes() const { return panel_bytes(dtype, columns); }
  std::int64_t count() const { return (rows + kPanelRows - 1) / kPanelRows; }
};

Packed packed(DType dtype, std::int64_t columns, std::int64_t rows, std::vector<std::byte> stored) {
  Packed result{dtype, columns, rows, std::move(stored), {}};
  const auto row_bytes = static_cast<std::int64_t>(result.stored.size()) / rows;
  result.panels.resize(static_cast<std::size_t>(result.count() * result.bytes()), std::byte{0xee});
  for (std::int64_t panel = 0; panel < result.count(); ++panel) {
    const std::byte* sources[kPanelRows] = {};
    for (std::int64_t row = 0; row < kPanelRows && panel * kPanelRows + row < rows; ++row)
      sources[row] = result.stored.data() + (panel * kPanelRows + row) * row_bytes;
    pack_panel(dtype, sources, columns, result.panels.data() + panel * result.bytes());
  }
  return result;
}

class Panels : public EveryIsa {
 protected:
  /// out: [tokens, rows + 3], with -77 where nothing is to be written.
  template <class Input>
  std::vector<float> multiply(void (*multiply_panel)(const PanelProduct&, const Input*), const Packed& w,
                              const std::vector<Input>& x, std::int64_t tokens, int planes = 1) const {
    std::vector<float> out(static_cast<std::size_t>(tokens * (w.rows + 3)), -77.0f);
    std::vector<std::byte> scratch(static_cast<std::size_t>(panel_scratch_bytes(w.columns)));
    for (std::int64_t panel = 0; panel < w.count(); ++panel) {
      const std::byte* const at = w.panels.data() + panel * w.bytes();
      PanelProduct product{.dtype = w.dtype, .panel = at, .columns = w.columns};
      product.rows = std::min(kPanelRows, w.rows - panel * kPanelRows);
      product.tokens = tokens;
      product.planes = planes;
      product.out = out.data() + panel * kPanelRows;
      product.out_stride = w.rows + 3;
      product.scratch = scratch.data();
      product.next = panel + 1 < w.count() ? at + w.bytes() : nullptr;
      multiply_panel(product, x.data());
    }
    return out;
  }

  std::vector<Int8Block> rounded(const std::vector<float>& values, std::int64_t columns, int planes) const {
    const std::int64_t blocks = columns / kInt8Block, rows = std::ssize(values) / columns;
    std::vector<Int8Block> result(static_cast<std::size_t>(rows * planes * blocks));
    for (std::int64_t row = 0; row < rows; ++row)
      kernels().to_int8_blocks(values.data() + row * columns, blocks, planes,
                               result.data() + row * planes * blocks);
    return result;
  }
};
INSTANTIATE_TEST_SUITE_P(Isa, Panels, ::testing::ValuesIn(available_isas()), isa_name);

TEST(PanelsOf, TheTypesThatHaveThem) {
  for (const DType dtype : kBlockTypes) {
    EXPECT_TRUE(has_panels(dtype)) << name(dtype);
    EXPECT_TRUE(fits_panels(dtype, 512));
    EXPECT_FALSE(fits_panels(dtype, info(dtype).block_elements + 2));
    EXPECT_EQ(panel_bytes(dtype, 768) % kPanelAlignment, 0) << name(dtype);
  }
  EXPECT_TRUE(has_panels(DType::kBF16));
  EXPECT_FALSE(fits_panels(DType::kBF16, 7));
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kQ5_0, DType::kIQ1S}) {
    EXPECT_FALSE(has_panels(dtype)) << name(dtype);
    EXPECT_EQ(panel_bytes(dtype, 512), 0);
  }
}

TEST(PanelsOf, StoredBytesAndNothingElseButInQ4K) {
  for (const DType dtype : {DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ6K, DType::kBF16})
    EXPECT_EQ(panel_bytes(dtype, 512), stored_bytes(dtype, kPanelRows * 512)->value) << name(dtype);
  EXPECT_EQ(panel_bytes(DType::kQ4K, 512), kPanelRows * 2 * (144 + 4));
}

// Products of whole numbers are exact and blocks are added in one order, so the panel's layout and the number
// of rows that pass it together leave no trace.
TEST_P(Panels, GiveTheBitsOfTheScalarForm) {
  for (const DType dtype : kBlockTypes)
    for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{3}})
      for (const std::int64_t rows : {1, 15, 61}) {
        const std::int64_t width = columns * info(dtype).block_elements;
        const Packed w = packed(dtype, width, rows, random_blocks(dtype, rows * width, random_));
        for (const int planes : {1, 2})
          for (const std::int64_t tokens : {1, 2, 3, 4, 5, 7, 13}) {
            const auto x = rounded(random_floats(tokens * width), width, planes);
            ASSERT_EQ(multiply(kernels().panel_int8, w, x, tokens, planes),
                      multiply(kernels_for(Isa::kScalar).panel_int8, w, x, tokens, planes))
                << name(dtype) << ' ' << rows << 'x' << width << ", " << tokens << " tokens, " << planes;
          }
      }
}

TEST_P(Panels, GiveTheBitsOfStoredRows) {
  if (!kernels().matmul_int8) return;
  for (const DType dtype : kBlockTypes) {
    const std::int64_t columns = 768, rows = 61, tokens = 7;
    const Packed w = packed(dtype, columns, rows, random_blocks(dtype, rows * columns, random_));
    for (const int planes : {1, 2}) {
      const auto x = rounded(random_floats(tokens * columns), columns, planes);
      std::vector<float> expected(static_cast<std::size_t>(tokens * (rows + 3)), -77.0f);
      std::vector<float> scratch(static_cast<std::size_t>(kScratchRows * columns));
      kernels().matmul_int8(dtype, w.stored.data(), columns, rows, x.data(), tokens, planes, expected.data(),
                            rows + 3, scratch.data());
      ASSERT_EQ(multiply(kernels().panel_int8, w, x, tokens, planes), expected) << name(dtype);
    }
  }
}

TEST_P(Panels, OfLargestCodesAndInputsDoNotOverflow) {
  for (const DType dtype : {DType::kQ4_0, DType::kQ8_0}) {
    const std::int64_t columns = 64, rows = 32;
    std::vector<std::byte> stored(static_cast<std::size_t>(stored_bytes(dtype, rows * columns)->value));
    for (const std::byte code : {std::byte{0x00}, std::byte{0x80}, std::byte{0x7f}, std::byte{0xff}}) {
      const std::size_t block = static_cast<std::size_t>(info(dtype).block_bytes);
      for (std::size_t i = 0; i < stored.size(); ++i)
        stored[i] = i % block == 0 ? std::byte{0} : i % block == 1 ? std::byte{0x3c} : code;
      const Packed w = packed(dtype, columns, rows, stored);
      for (const float sign : {1.0f, -1.0f})
        for (const std::int64_t tokens : {1, 2, 4}) {
          const auto x =
              rounded(std::vector<float>(static_cast<std::size_t>(tokens * columns), sign * 127), columns, 1);
          ASSERT_EQ(multiply(kernels().panel_int8, w, x, tokens),
                    multiply(kernels_for(Isa::kScalar).panel_int8, w, x, tokens))
              << name(dtype) << " code " << std::to_integer<int>(code);
        }
    }
  }
}

TEST_P(Panels, OfBf16AgreeWithTheScalarForm) {
  for (const std::int64_t columns : {2, 30, 576})
    for (const std::int64_t rows : {1, 17, 61}) {
      const auto numbers = random_floats(rows * columns);
      std::vector<std::byte> stored(static_cast<std::size_t>(rows * columns * 2));
      kernels().to_bf16(numbers.data(), rows * columns, reinterpret_cast<std::uint16_t*>(stored.data()));
      const Packed w = packed(DType::kBF16, columns, rows, stored);
      std::vector<float> alone;
      const auto x = random_floats(13 * columns);
      for (const std::int64_t tokens : {1, 2, 5, 6, 7, 13}) {
        const std::vector<float> some(x.begin(), x.begin() + tokens * columns);
        const auto result = multiply(kernels().panel_float, w, some, tokens);
        ASSERT_EQ(result, multiply(kernels_for(Isa::kScalar).panel_float, w, some, tokens));
        if (alone.empty()) alone = result;
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), result.begin())) << tokens << " tokens";
      }
    }
}

// Inputs are rounded too, and how the processor adds a pair is its own matter: only the batch must not
// matter.
TEST_P(Panels, OfBf16WithInputsInBf16) {
  if (!kernels().panel_bf16) return;
  const std::int64_t columns = 576, rows = 61;
  const auto numbers = random_floats(rows * columns), x = random_floats(13 * columns);
  std::vector<std::byte> stored(static_cast<std::size_t>(rows * columns * 2));
  kernels().to_bf16(numbers.data(), rows * columns, reinterpret_cast<std::uint16_t*>(stored.data()));
  const Packed w = packed(DType::kBF16, columns, rows, stored);
  std::vector<std::uint16_t> inputs(x.size());
  kernels().to_bf16(x.data(), std::ssize(x), inputs.data());
  std::vector<float> widened(x.size());
  kernels().to_float(DType::kBF16, reinterpret_cast<const std::byte*>(inputs.data()), std::ssize(x),
                     widened.data());
  const auto all = multiply(kernels().panel_bf16, w, inputs, 13);
  const auto expected = multiply(kernels_for(Isa::kScalar).panel_float, w, widened, 13);
  for (std::size_t i = 0; i < all.size(); ++i) ASSERT_NEAR(all[i], expected[i], 1e-4f * columns);
  for (const std::int64_t tokens : {1, 2, 11, 12}) {
    const auto some =
        multiply(kernels().panel_bf16, w,
                 std::vector<std::uint16_t>(inputs.begin(), inputs.begin() + tokens * columns), tokens);
    ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << tokens << " tokens";
  }
}

}  // namespace
}  // namespace plimsoll::kernels
