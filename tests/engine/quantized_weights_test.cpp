// SPDX-License-Identifier: Apache-2.0
// Every quantized layout against its definition in doubles, in shapes that the golden sets do not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/engine/quantized_modules.h"

namespace plimsoll::engine {
namespace {

using ValueOf = std::function<double(std::int64_t row, std::int64_t column)>;

// Holds all rows, and each row alone, to the definition: at most the roundings of two products apart.
void expect_rows(const HeldTensors& tensors, std::int64_t rows, std::int64_t columns,
                 const ValueOf& value_of) {
  const auto matrix = load(tensors, rows, columns);
  ASSERT_TRUE(matrix) << matrix.error().describe();
  std::vector<float> all(static_cast<std::size_t>(rows * columns));
  widen_rows(*matrix, 0, rows, all.data());
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<float> one(static_cast<std::size_t>(columns));
    widen_rows(*matrix, row, row + 1, one.data());
    for (std::int64_t column = 0; column < columns; ++column) {
      const float found = all[static_cast<std::size_t>(row * columns + column)];
      const double expected = value_of(row, column);
      ASSERT_NEAR(found, expected, 1.5e-7 * std::fabs(expected)) << row << ", " << column;
      ASSERT_EQ(found, one[static_cast<std::size_t>(column)]);
    }
  }
}

TEST_F(GroupedWeights, GptqOfAllWidthsAndVersionsInOrderAndOutOfIt) {
  for (const int bits : {2, 4, 8})
    for (const bool is_ordered : {false, true})
      for (const int zero_offset : {0, 1}) {
        SCOPED_TRACE(bits);
        Grouped made = random_grouped(bits);
        if (is_ordered) std::shuffle(made.order.begin(), made.order.end(), random_);
        const HeldTensors tensors = gptq(made, bits, zero_offset ? "gptq" : "gptq_v2");
        expect_rows(tensors, Grouped::kRows, Grouped::kColumns, [&](std::int64_t row, std::int64_t column) {
          return made.value(row, column, zero_offset);
        });
      }
}

TEST_F(GroupedWeights, AnOrderOfMoreGroupsThanAreKept) {
  constexpr std::int64_t kRows = 16, kColumns = 1200;  // a group for each two columns
  const Codes codes = random_codes(kRows * kColumns, 16), zeros = random_codes(kColumns / 2 * kRows, 16);
  const auto scales = random_scales(kColumns / 2 * kRows);
  std::vector<std::int32_t> order;
  for (std::int32_t i = 0; i < kColumns; ++i) order.push_back(i % (kColumns / 2));
  HeldTensors tensors = with_config(R"({"quant_method": "gptq", "group_size": 2, "bits": 4})");
  tensors.put(part("qweight"), DType::kI32, {kColumns / 8, kRows},
              transposed(packed(codes, kColumns, 4), kRows, kColumns / 8));
  tensors.put(part("qzeros"), DType::kI32, {kColumns / 2, kRows / 8}, packed(zeros, kRows, 4));
  tensors.put(part("scales"), DType::kF32, {kColumns / 2, kRows}, scales);
  tensors.put(part("g_idx"), DType::kI32, {kColumns}, order);
  expect_rows(tensors, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t step = column % (kColumns / 2) * kRows + row;
    return (at(codes, row * kColumns + column) - at(zeros, step) - 1) * at(scales, step);
  });
}

TEST_F(GroupedWeights, AwqWithZeroPointsAndWithout) {
  for (const bool has_zeros : {false, true}) {
    Grouped made = random_grouped(4);
    if (!has_zeros) made.zeros.assign(made.zeros.size(), 8);
    // The eight of a word stand in the order 0 2 4 6 1 3 5 7.
    const auto interleaved = [](const Codes& lines) {
      constexpr std::size_t kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
      Codes result(lines.size());
      for (std::size_t i = 0; i < lines.size(); ++i) result[i] = lines[i / 8 * 8 + kOrder[i % 8]];
      return packed(result, Grouped::kRows, 4);
    };
    HeldTensors tensors = with_config(std::string(R"({"quant_method": "awq", "bits": 4, "group_size": 16,
        "version": "GEMM", "zero_point": )") +
                                      (has_zeros ? "true}" : "false}"));
    tensors.put(part("qweight"), DType::kI32, {Grouped::kColumns, Grouped::kRows / 8},
                interleaved(transposed(made.codes, Grouped::kRows, Grouped::kColumns)));
    tensors.put(part("scales"), DType::kF32, {Grouped::kGroups, Grouped::kRows}, made.scales);
    if (has_zeros)
      tensors.put(part("qzeros"), DType::kI32, {Grouped::kGroups, Grouped::kRows / 8},
                  interleaved(made.zeros));
    expect_rows(tensors, Grouped::kRows, Grouped::kColumns,
                [&](std::int64_t row, std::int64_t column) { return made.value(row, column, 0); });
  }
}

std::string compressed(const std::string& format, const std::string& weights) {
  return R"({"quant_method": "compressed-tensors", "format": ")" + format +
         R"(", "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" + weights + "}}}";
}

TEST_F(QuantizedWeights, WordsOfCompressedTensors) {
  constexpr std::int64_t kRows = 20, kColumns = 40, kGroups = 5;  // 20 x 8; neither fills whole words
  for (const int bits : {2, 4, 8})
    for (const bool has_zeros : {false, true})
      for (const bool has_order : {false, true}) {
        const Codes codes = random_codes(kRows * kColumns, 1 << bits);
        const Codes zeros = has_zeros ? random_codes(kRows * kGroups, 1 << bits)
                                      : Codes(static_cast<std::size_t>(kRows * kGroups), 1 << (bits - 1));
        const auto scales = random_scales(kRows * kGroups);
        std::vector<std::int32_t> order;
        for (std::int32_t i = 0; i < kColumns; ++i) order.push_back(has_order ? i % 5 : i / 8);
        HeldTensors tensors = with_config(
            compressed("pack-quantized",
                       std::string(R"({"type": "int", "strategy": "group", "group_size": 8, "symmetric": )") +
                           (has_zeros ? "false" : "true") + ", \"num_bits\": " + std::to_string(bits) + "}"));
        const auto words = [&](std::int64_t length) { return (length * bits + 31) / 32; };
        tensors.put(part("weight_packed"), DType::kI32, {kRows, words(kColumns)},
                    packed(codes, kColumns, bits));
        tensors.put(part("weight_scale"), DType::kF32, {kRows, kGroups}, scales);
        tensors.put(part("weight_shape"), DType::kI64, {2}, std::vector<std::int64_t>{kRows, kColumns});
        if (has_order) tensors.put(part("weight_g_idx"), DType::kI32, {kColumns}, order);
        if (has_zeros)
          tensors.put(
              part("weight_zero_point"), DType::kI32, {words(kRows), kGroups},
              transposed(packed(transposed(zeros, kRows, kGroups), kRows, bits), kGroups, words(kRows)));
        expect_rows(tensors, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
          const std::int64_t step = row * kGroups + order[static_cast<std::size_t>(column)];
          return (at(codes, row * kColumns + column) - at(zeros, step)) * at(scales, step);
        });
      }
}

TEST_F(QuantizedWeights, BytesWithScalesOfEveryGranularity) {
  constexpr std::int64_t kRows = 10, kColumns = 24;
  struct Grid {
    std::string weights;
    std::int64_t block_rows, block_columns;
    bool has_zeros;
  };
  for (const Grid& grid :
       {Grid{R"({"num_bits": 8, "type": "int", "strategy": "tensor"})", kRows, kColumns, false},
        Grid{R"({"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": false})", 1, kColumns,
             true},
        Grid{R"({"num_bits": 8, "type": "int", "strategy": "group", "group_size": 8})", 1, 8, false},
        Grid{R"({"num_bits": 8, "type": "int", "strategy": "block", "block_structure": [4, 16]})", 4, 16,
             false}}) {
    SCOPED_TRACE(grid.weights);
    const std::int64_t high = (kRows + grid.block_rows - 1) / grid.block_rows;
    const std::int64_t wide = (kColumns + grid.block_columns - 1) / grid.block_columns;
    std::vector<std::int8_t> codes, zeros(static_cast<std::size_t>(high * wide), 0);
    for (const int code : random_codes(kRows * kColumns, 256))
      codes.push_back(static_cast<std::int8_t>(code));
    if (grid.has_zeros)
      for (auto& zero : zeros) zero = static_cast<std::int8_t>(random_() % 256);
    const auto scales = random_scales(high * wide);
    HeldTensors tensors = with_config(compressed("int-quantized", grid.weights));
    tensors.put(part("weight"), DType::kI8, {kRows, kColumns}, codes);
    tensors.put(part("weight_scale"), DType::kF32, {high, wide}, scales);
    if (grid.has_zeros) tensors.put(part("weight_zero_point"), DType::kI8, {high, wide}, zeros);
    expect_rows(tensors, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
      const std::int64_t step = row / grid.block_rows * wide + column / grid.block_columns;
      return (at(codes, row * kColumns + column) - at(zeros, step)) * at(scales, step);
    });
  }
}

double small_float(int code, int fraction_bits, int bias) {
  const int fraction = code & ((1 << fraction_bits) - 1), exponent = code >> fraction_bits;
  return exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                       : std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

double e4m3(int code) {
  return (code & 128 ? -1 : 1) * small_float(code & 127, 3, 7);
}

double e2m1(int code) {
  return (code & 8 ? -1 : 1) * small_float(code & 7, 1, 1);
}

TEST_F(QuantizedWeights, Fp8InBlocksThatDoNotFillTheMatrix) {
  constexpr std::int64_t kRows = 9, kColumns = 20, kWide = 3;
  std::vector<std::uint8_t> codes;
  for (const int code : random_codes(kRows * kColumns, 127)) codes.push_back(static_cast<std::uint8_t>(code));
  const auto scales = random_scales(3 * kWide);
  HeldTensors tensors = with_config(R"({"quant_method": "fp8", "weight_block_size": [4, 8]})");
  tensors.put(part("weight"), DType::kF8E4M3, {kRows, kColumns}, codes);
  tensors.put(part("weight_scale_inv"), DType::kF32, {3, kWide}, scales);
  expect_rows(tensors, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
    return e4m3(codes[static_cast<std::size_t>(row * kColumns + column)]) *
           at(scales, row / 4 * kWide + column / 8);
  });
}

TEST_F(QuantizedWeights, FourBitFloatsWithTheirTwoKindsOfScales) {
  constexpr std::int64_t kRows = 3, kColumns = 64;
  const Codes codes = random_codes(kRows * kColumns, 16);
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < codes.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4));
  std::vector<std::uint8_t> scales;
  for (const int code : random_codes(kRows * 4, 120)) scales.push_back(static_cast<std::uint8_t>(code));
  HeldTensors modelopt = with_config(R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})");
  modelopt.put(part("weight"), DType::kU8, {kRows, kColumns / 2}, bytes);
  modelopt.put(part("weight_scale"), DType::kF8E4M3, {kRows, 4}, scales);
  modelopt.put(part("weight_scale_2"), DType::kF32, {}, std::vector<float>{0.0625F});
  expect_rows(modelopt, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t i = row * kColumns + column;
    return e2m1(codes[static_cast<std::size_t>(i)]) * e4m3(scales[static_cast<std::size_t>(i / 16)]) * 0.0625;
  });
  HeldTensors mxfp4 = with_config(compressed(
      "mxfp4-pack-quantized", R"({"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32})"));
  mxfp4.put(part("weight_packed"), DType::kU8, {kRows, kColumns / 2}, bytes);
  mxfp4.put(part("weight_scale"), DType::kU8, {kRows, 2},
            std::vector<std::uint8_t>{0, 1, 127, 130, 200, 100});
  const int exponents[] = {-127, -126, 0, 3, 73, -27};
  expect_rows(mxfp4, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
    return std::ldexp(e2m1(codes[static_cast<std::size_t>(row * kColumns + column)]),
                      exponents[row * 2 + column / 32]);
  });
}

std::vector<std::uint8_t> text_bytes(const std::string& text) {
  return {text.begin(), text.end()};
}

TEST_F(QuantizedWeights, BlocksOfBitsandbytesCrossRowsOfOddLength) {
  constexpr std::int64_t kRows = 5, kColumns = 27, kBlock = 32, kBlocks = 5;
  Codes codes = random_codes(kRows * kColumns + 1, 16);
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < codes.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(codes[i] << 4 | codes[i + 1]));
  const auto book = random_scales(16), nested_book = random_scales(256), nested = random_scales(3);
  std::vector<std::uint8_t> absmax;
  for (const int code : random_codes(kBlocks, 256)) absmax.push_back(static_cast<std::uint8_t>(code));
  HeldTensors tensors =
      with_config(R"({"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "fp4"})");
  tensors.put(part("weight"), DType::kU8, {static_cast<std::int64_t>(bytes.size()), 1}, bytes);
  tensors.put(part("weight.quant_map"), DType::kF32, {16}, book);
  tensors.put(part("weight.absmax"), DType::kU8, {kBlocks}, absmax);
  tensors.put(part("weight.nested_quant_map"), DType::kF32, {256}, nested_book);
  tensors.put(part("weight.nested_absmax"), DType::kF32, {3}, nested);
  const auto state =
      text_bytes(R"({"quant_type": "fp4", "blocksize": 32, "dtype": "bfloat16", "shape": [5, 27],
      "nested_blocksize": 2, "nested_dtype": "float32", "nested_offset": 0.25})");
  tensors.put(part("weight.quant_state.bitsandbytes__fp4"), DType::kU8,
              {static_cast<std::int64_t>(state.size())}, state);
  expect_rows(tensors, kRows, kColumns, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t i = row * kColumns + column, block = i / kBlock;
    const double scale =
        at(nested_book, absmax[static_cast<std::size_t>(block)]) * at(nested, block / 2) + 0.25;
    return at(book, codes[static_cast<std::size_t>(i)]) * scale;
  });
}

}  // namespace
}  // namespace plimsoll::engine
