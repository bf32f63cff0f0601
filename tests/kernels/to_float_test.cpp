// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/kernels/every_isa.h"
#include "tests/kernels/golden_rows.h"

namespace plimsoll::kernels {
namespace {

class ToFloat : public EveryIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, ToFloat, ::testing::ValuesIn(available_isas()), isa_name);

TEST_P(ToFloat, BlocksReadBitForBitAsTheReference) {
  const auto rows = golden_rows();
  ASSERT_EQ(rows.size(), 23u * 3u);
  for (const GoldenRows& row : rows) {
    ASSERT_FALSE(row.values.empty()) << row.name;
    const auto elements = static_cast<std::int64_t>(row.values.size());
    ASSERT_EQ(stored_bytes(row.dtype, elements), Bytes(static_cast<std::int64_t>(row.stored.size())));
    // One byte off any alignment, as a mapped file may have it.
    std::vector<std::byte> shifted(row.stored.size() + 1);
    std::memcpy(shifted.data() + 1, row.stored.data(), row.stored.size());
    std::vector<float> out(row.values.size() + 1, -77.0f);
    kernels().to_float(row.dtype, shifted.data() + 1, elements, out.data());
    for (std::size_t i = 0; i < row.values.size(); ++i)
      ASSERT_EQ(bits(out[i]), bits(row.values[i])) << row.name << " element " << i;
    EXPECT_EQ(out.back(), -77.0f) << "nothing is written beyond the last element";
  }
}

TEST_P(ToFloat, WorkedCaseOfTheFormatPage) {
  std::vector<std::byte> block(18, std::byte{0xf0});
  block[0] = std::byte{0x00};
  block[1] = std::byte{0x3c};
  std::vector<float> out(32);
  kernels().to_float(DType::kQ4_0, block.data(), 32, out.data());
  EXPECT_EQ(out[0], -8.0f);
  EXPECT_EQ(out[16], 7.0f);
}

// Written from the definition of the format, with double arithmetic.
float half_by_definition(std::uint32_t half) {
  const int exponent = static_cast<int>(half >> 10 & 31);
  const double fraction = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : static_cast<float>(sign * std::numeric_limits<double>::infinity());
  if (exponent == 0) return static_cast<float>(sign * std::ldexp(fraction, -24));
  return static_cast<float>(sign * std::ldexp(1024 + fraction, exponent - 25));
}

TEST_P(ToFloat, AllHalvesAndBf16sWiden) {
  std::vector<std::uint16_t> stored(65536);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint16_t>(i);
  std::vector<float> out(stored.size());
  const auto* bytes = reinterpret_cast<const std::byte*>(stored.data());
  kernels().to_float(DType::kF16, bytes, 65536, out.data());
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const float expected = half_by_definition(i);
    if (std::isnan(expected))
      ASSERT_TRUE(std::isnan(out[i])) << i;
    else
      ASSERT_EQ(bits(out[i]), bits(expected)) << i;
  }
  kernels().to_float(DType::kBF16, bytes, 65536, out.data());
  for (std::uint32_t i = 0; i < 65536; ++i) ASSERT_EQ(bits(out[i]), i << 16) << i;
  std::vector<std::uint16_t> back(stored.size());
  kernels().to_bf16(out.data(), 65536, back.data());
  for (std::uint32_t i = 0; i < 65536; ++i)
    ASSERT_EQ(back[i], std::isnan(out[i]) ? (i | 0x40u) : i) << "a bf16 survives, a NaN becomes quiet";
}

TEST_P(ToFloat, Bf16RoundsToNearestEven) {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> cases{
      {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81}, {0x3f807fff, 0x3f80},
      {0x7f7fffff, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x00000001, 0x0000},
      {0x00008001, 0x0001}, {0x80000000, 0x8000}, {0xffffffff, 0xffff}};
  std::vector<float> values;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const auto& [from, to] : cases) {
      float value;
      std::memcpy(&value, &from, sizeof value);
      values.push_back(value);
    }
  std::vector<std::uint16_t> out(values.size());
  kernels().to_bf16(values.data(), static_cast<std::int64_t>(values.size()), out.data());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], cases[i % cases.size()].second) << i;
}

TEST_P(ToFloat, PlainTypesTakeAnyLength) {
  for (std::int64_t n = 0; n < 40; ++n)
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const std::int64_t size = info(dtype).block_bytes;
      std::vector<std::byte> stored(static_cast<std::size_t>(n * size + 1));
      for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::byte>(0x30 + i % 11);
      std::vector<float> out(static_cast<std::size_t>(n + 1), -77.0f), expected(out);
      kernels().to_float(dtype, stored.data() + 1, n, out.data());
      kernels_for(Isa::kScalar).to_float(dtype, stored.data() + 1, n, expected.data());
      EXPECT_EQ(out, expected) << name(dtype) << " " << n;
      EXPECT_EQ(out.back(), -77.0f);
    }
}

TEST(CanRead, NamesWhatTheTablesTake) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_1, DType::kQ6K, DType::kIQ1M, DType::kNVFP4})
    EXPECT_TRUE(can_read(dtype)) << name(dtype);
  for (const DType dtype : {DType::kF64, DType::kI32, DType::kQ8_1, DType::kQ8K, DType::kQ1_0})
    EXPECT_FALSE(can_read(dtype)) << name(dtype);
}

}  // namespace
}  // namespace plimsoll::kernels
