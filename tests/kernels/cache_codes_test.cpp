// SPDX-License-Identifier: Apache-2.0
// Eight-bit vectors of the cache: written from floats, read in products and sums.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/every_isa.h"

namespace plimsoll::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class CacheCodes : public EveryIsa {
 protected:
  std::vector<std::uint8_t> e4m3_of(const std::vector<float>& values) const {
    std::vector<std::uint8_t> codes(values.size());
    kernels().to_e4m3(values.data(), static_cast<std::int64_t>(values.size()), codes.data());
    return codes;
  }
  float e4m3(float value) const { return code_values(DType::kF8E4M3)[e4m3_of({value})[0]]; }
};
INSTANTIATE_TEST_SUITE_P(Isa, CacheCodes, ::testing::ValuesIn(available_isas()), isa_name);

const std::vector<std::int64_t> kSizes{0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 80, 100, 127, 576};

// The nearest of all numbers of the type; of two as near, the one whose code is even.
float nearest_e4m3(float value) {
  const float* values = code_values(DType::kF8E4M3);
  int best = 0;
  for (int code = 0; code < 0x7f; ++code) {
    const auto distance = [&](int of) { return std::abs(std::abs(value) - values[of]); };
    if (distance(code) < distance(best) || (distance(code) == distance(best) && code % 2 == 0)) best = code;
  }
  return std::signbit(value) ? -values[best] : values[best];
}

TEST_P(CacheCodes, EveryE4m3NumberIsWrittenAsItself) {
  const float* values = code_values(DType::kF8E4M3);
  for (int code = 0; code < 256; ++code) {
    const float value = values[code];
    const auto written = e4m3_of({value})[0];
    EXPECT_EQ(std::isnan(value) ? written & 0x7f : written, std::isnan(value) ? 0x7f : code);
  }
}

TEST_P(CacheCodes, E4m3RoundsToTheNearest) {
  for (const float scale : {1e-4f, 1e-3f, 0.02f, 1.0f, 30.0f})
    for (const float value : random_floats(2'000, scale))
      EXPECT_EQ(e4m3(value), nearest_e4m3(value)) << value;
  const float* values = code_values(DType::kF8E4M3);
  for (int code = 0; code + 1 < 0x7f; ++code) {
    const float middle = (values[code] + values[code + 1]) / 2;
    EXPECT_EQ(e4m3(middle), values[code + code % 2]) << middle;
    EXPECT_EQ(e4m3(-std::nextafter(middle, kInf)), -values[code + 1]) << middle;
  }
}

TEST_P(CacheCodes, E4m3StopsAtItsLargest) {
  for (const float value : {449.0f, 464.0f, 1e6f, kInf}) {
    EXPECT_EQ(e4m3(value), 448.0f);
    EXPECT_EQ(e4m3(-value), -448.0f);
  }
  EXPECT_TRUE(std::isnan(e4m3(kNan)));
}

TEST_P(CacheCodes, Int8SpansTheLargestMagnitude) {
  for (const std::int64_t n : kSizes) {
    auto values = random_floats(n + 1, 3.0f);
    std::vector<std::int8_t> codes(values.size() + 1, 99);
    const float scale = kernels().to_i8(values.data() + 1, n, codes.data() + 1);
    EXPECT_EQ(codes[0], 99);
    EXPECT_EQ(codes.back(), 99) << "nothing is written beyond the end";
    float largest = 0;
    for (std::size_t i = 1; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i]));
    EXPECT_EQ(bits(scale), bits(largest / 127.0f));
    for (std::size_t i = 1; i < values.size(); ++i)
      // Half a step, and the rounding of the quotient.
      EXPECT_NEAR(static_cast<float>(codes[i]) * scale, values[i], 0.50001f * scale) << n << " " << i;
  }
}

TEST_P(CacheCodes, Int8TellsZerosAndWhatIsNotFinite) {
  std::vector<std::int8_t> codes(40, 99);
  EXPECT_EQ(kernels().to_i8(std::vector<float>(40, -0.0f).data(), 40, codes.data()), 0.0f);
  EXPECT_EQ(std::ranges::count(codes, 0), 40);
  for (const float odd : {kNan, kInf, -kInf}) {
    std::vector<float> values(40, 1.0f);
    values[33] = odd;
    EXPECT_TRUE(std::isnan(kernels().to_i8(values.data(), 40, codes.data())));
    EXPECT_EQ(std::ranges::count(codes, 0), 0) << "or a product with it would be no NaN";
  }
  EXPECT_EQ(kernels().to_i8(std::vector<float>(40, 1e-40f).data(), 40, codes.data()), 0.0f);
  EXPECT_FALSE(std::isinf(kernels().to_i8(std::vector<float>(40, 3e38f).data(), 40, codes.data())));
}

TEST_P(CacheCodes, ProductsAndSumsReadTheCodes) {
  for (const std::int64_t n : kSizes) {
    const auto a = random_floats(n + 1), before = random_floats(n + 2), values = random_floats(n + 1);
    const auto floats = e4m3_of(values);
    std::vector<std::int8_t> whole(values.size());
    kernels().to_i8(values.data(), n + 1, whole.data());
    double of_floats = 0, of_whole = 0, magnitude = 0, whole_magnitude = 0;
    auto out_of_floats = before, out_of_whole = before;
    kernels().add_scaled_e4m3(0.37f, floats.data() + 1, n, out_of_floats.data() + 1);
    kernels().add_scaled_i8(0.37f, whole.data() + 1, n, out_of_whole.data() + 1);
    for (std::size_t i = 1; i < a.size(); ++i) {
      const double x = code_values(DType::kF8E4M3)[floats[i]], y = whole[i];
      of_floats += static_cast<double>(a[i]) * x;
      of_whole += static_cast<double>(a[i]) * y;
      magnitude += std::abs(static_cast<double>(a[i]) * x);
      whole_magnitude += std::abs(static_cast<double>(a[i]) * y);
      const auto start = static_cast<double>(before[i]);
      // One or two roundings of numbers below 8, and below 64.
      EXPECT_NEAR(out_of_floats[i], start + static_cast<double>(0.37f) * x, 1e-6) << n << " " << i;
      EXPECT_NEAR(out_of_whole[i], start + static_cast<double>(0.37f) * y, 8e-6) << n << " " << i;
    }
    EXPECT_EQ(out_of_floats.back(), before.back());
    EXPECT_EQ(out_of_whole.back(), before.back());
    // Chains of at most 576 / 8 roundings; see the matmul test.
    EXPECT_NEAR(kernels().dot_e4m3(a.data() + 1, floats.data() + 1, n), of_floats, 1e-6 * magnitude) << n;
    EXPECT_NEAR(kernels().dot_i8(a.data() + 1, whole.data() + 1, n), of_whole, 1e-6 * whole_magnitude) << n;
  }
}

TEST_P(CacheCodes, EveryE4m3CodeIsReadAsItsNumber) {
  for (const std::int64_t n : {1, 24}) {
    std::vector<float> ones(static_cast<std::size_t>(n), 0.0f);
    ones.back() = 1;
    for (int code = 0; code < 256; ++code) {
      std::vector<std::uint8_t> codes(ones.size(), 0);
      codes.back() = static_cast<std::uint8_t>(code);
      const float expected = code_values(DType::kF8E4M3)[code];
      const float found = kernels().dot_e4m3(ones.data(), codes.data(), n);
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(found) : found == expected) << code;
    }
  }
}

}  // namespace
}  // namespace plimsoll::kernels
