// SPDX-License-Identifier: Apache-2.0
// Views of a matrix: some of its rows, and matrices stored turned round.
#include "engine/stored_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace plimsoll::engine {
namespace {

constexpr std::int64_t kRows = 12, kColumns = 5;

// Row r, column c holds 100 r + c.
std::vector<float> numbers(bool is_turned) {
  std::vector<float> values(static_cast<std::size_t>(kRows * kColumns));
  for (std::int64_t r = 0; r < kRows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c)
      values[static_cast<std::size_t>(is_turned ? c * kRows + r : r * kColumns + c)] =
          static_cast<float>(100 * r + c);
  return values;
}

StoredMatrix matrix_of(const std::vector<float>& values, bool is_turned) {
  const auto* data = reinterpret_cast<const std::byte*>(values.data());
  if (is_turned) return {kRows, kColumns, TurnedRows{DType::kF32, data, kRows}};
  return {kRows, kColumns, PlainRows{DType::kF32, data, kColumns * 4}};
}

// The rows, in order, by reading and by multiplying with unit vectors.
void expect_rows(const StoredMatrix& matrix, const std::vector<std::int64_t>& expected) {
  ASSERT_EQ(matrix.rows, std::ssize(expected));
  std::vector<float> widened(static_cast<std::size_t>(matrix.rows * kColumns));
  widen_rows(matrix, 0, matrix.rows, widened.data());
  std::vector<float> units(static_cast<std::size_t>(kColumns * kColumns));
  for (std::int64_t c = 0; c < kColumns; ++c) units[static_cast<std::size_t>(c * kColumns + c)] = 1.0F;
  std::vector<float> product(static_cast<std::size_t>(kColumns * matrix.rows));
  std::vector<float> scratch(static_cast<std::size_t>(kernels::kScratchRows * kColumns));
  // In parts that begin and end within runs.
  for (std::int64_t begin = 0; begin < matrix.rows; begin += 5)
    multiply_rows(kernels::select(), matrix, begin, std::min(begin + 5, matrix.rows), units.data(), kColumns,
                  product.data(), matrix.rows, scratch.data());
  for (std::int64_t r = 0; r < matrix.rows; ++r)
    for (std::int64_t c = 0; c < kColumns; ++c) {
      const auto value = static_cast<float>(100 * expected[static_cast<std::size_t>(r)] + c);
      EXPECT_EQ(widened[static_cast<std::size_t>(r * kColumns + c)], value) << r << " " << c;
      EXPECT_EQ(product[static_cast<std::size_t>(c * matrix.rows + r)], value) << r << " " << c;
    }
}

TEST(StoredMatrix, ViewsHoldTheirRowsWhicheverWayTheyAreStored) {
  for (const bool is_turned : {false, true}) {
    const auto values = numbers(is_turned);
    const StoredMatrix whole = matrix_of(values, is_turned);
    expect_rows(whole, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    expect_rows(some_rows(whole, 3, {4, 0, 0}), {4, 5, 6});
    // Two of every six from the third on: the keys of heads that keep q, k and v in turn.
    expect_rows(some_rows(whole, 4, {2, 2, 6}), {2, 3, 8, 9});
    expect_rows(some_rows(some_rows(whole, 8, {2, 0, 0}), 4, {1, 2, 4}), {3, 4, 7, 8});
  }
}

}  // namespace
}  // namespace plimsoll::engine
