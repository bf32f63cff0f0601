// SPDX-License-Identifier: Apache-2.0
// One quantized module with random codes and scales, and its layouts packed in plain code, for the tests of
// what the engine reads.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "engine/quantized_weights.h"
#include "tests/engine/held_tensors.h"

namespace plimsoll::engine {

using Codes = std::vector<int>;  // [rows, columns]

/// An artifact without tensors whose config declares this.
HeldTensors with_config(const std::string& declaration);
/// The name of one of the module's tensors.
std::string part(const std::string& ending);
/// The module's matrix, as declared.
Result<StoredMatrix> load(const HeldTensors& tensors, std::int64_t rows, std::int64_t columns);
/// Codes [lines, length] packed along the lines, lowest first.
std::vector<std::uint32_t> packed(const Codes& codes, std::int64_t length, int bits);

template <class T>
std::vector<T> transposed(const std::vector<T>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<T> result(values.size());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      result[static_cast<std::size_t>(column * rows + row)] =
          values[static_cast<std::size_t>(row * columns + column)];
  return result;
}

template <class T>
double at(const std::vector<T>& values, std::int64_t i) {
  return static_cast<double>(values[static_cast<std::size_t>(i)]);
}

class QuantizedWeights : public ::testing::Test {
 protected:
  Codes random_codes(std::int64_t count, int below) {
    Codes codes(static_cast<std::size_t>(count));
    for (int& code : codes) code = static_cast<int>(random_() % static_cast<unsigned>(below));
    return codes;
  }
  std::vector<float> random_scales(std::int64_t count) {
    std::vector<float> scales(static_cast<std::size_t>(count));
    for (float& scale : scales) scale = std::ldexp(1 + static_cast<float>(random_() % 1024) / 1024, -5);
    return scales;
  }
  std::mt19937 random_{8};
};

// What a GPTQ or AWQ matrix of [16, 64] in groups of 16 is made of.
struct Grouped {
  static constexpr std::int64_t kRows = 16, kColumns = 64, kGroup = 16, kGroups = 4;
  Codes codes, zeros;               // [rows, columns], [groups, rows]
  std::vector<float> scales;        // [groups, rows]
  std::vector<std::int32_t> order;  // [columns]
  double value(std::int64_t row, std::int64_t column, int zero_offset) const {
    const std::int64_t group = order[static_cast<std::size_t>(column)];
    const std::int64_t step = group * kRows + row;
    return (at(codes, row * kColumns + column) - at(zeros, step) - zero_offset) * at(scales, step);
  }
};

class GroupedWeights : public QuantizedWeights {
 protected:
  Grouped random_grouped(int bits) {
    Grouped made;
    made.codes = random_codes(Grouped::kRows * Grouped::kColumns, 1 << bits);
    made.zeros = random_codes(Grouped::kGroups * Grouped::kRows, 1 << bits);
    made.scales = random_scales(Grouped::kGroups * Grouped::kRows);
    for (std::int32_t i = 0; i < Grouped::kColumns; ++i) made.order.push_back(i / Grouped::kGroup);
    return made;
  }
  static HeldTensors gptq(const Grouped& made, int bits, const std::string& format);
};

}  // namespace plimsoll::engine
