// SPDX-License-Identifier: Apache-2.0
// Against the definitions in double precision.
#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace plimsoll::kernels {
namespace {

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(static_cast<float>(std::sin(static_cast<double>(i) * 1.7)) * 4.0F);
  return x;
}

double defined(Activation activation, double x) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
    case Activation::kGelu:
      return x / 2 * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2.0 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kRelu2:
      return x > 0 ? x * x : 0;
  }
  return NAN;
}

// A few units in the last place of values up to 16.
constexpr double kTolerance = 4e-6;

TEST(Elementwise, ActivationsAreWhatTheyAreDefinedAs) {
  for (const auto activation :
       {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh, Activation::kRelu, Activation::kRelu2})
    for (const std::int64_t n : {0, 1, 33}) {
      const auto x = numbers(n);
      auto alone = x, gated = x;
      const std::vector<float> up(x.rbegin(), x.rend());
      activate(activation, n, alone.data());
      activate_gated(activation, gated.data(), up.data(), n, gated.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = defined(activation, static_cast<double>(x[i]));
        EXPECT_NEAR(static_cast<double>(alone[i]), expected, kTolerance);
        EXPECT_NEAR(static_cast<double>(gated[i]), expected * static_cast<double>(up[i]), 4 * kTolerance);
      }
    }
  float extreme[] = {-1e30F, 1e30F, -INFINITY};
  activate(Activation::kGeluTanh, 2, extreme);
  EXPECT_EQ(extreme[0], 0.0F);
  EXPECT_EQ(extreme[1], 1e30F);
}

TEST(Elementwise, LayerNormCentresAndScales) {
  for (const std::int64_t n : {1, 5, 64}) {
    auto x = numbers(n);
    for (float& value : x) value += 1000.0F;  // far from zero: a variance of squares would lose its digits
    const auto weight = numbers(n);
    const std::vector<float> bias(x.size(), 0.5F);
    double mean = 0, variance = 0;
    for (const float value : x) mean += static_cast<double>(value) / static_cast<double>(n);
    for (const float value : x)
      variance += std::pow(static_cast<double>(value) - mean, 2) / static_cast<double>(n);
    std::vector<float> out(x.size());
    layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5F, out.data());
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_NEAR(
          static_cast<double>(out[i]),
          (static_cast<double>(x[i]) - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(weight[i]) +
              0.5,
          kTolerance);
    layer_norm(x.data(), nullptr, nullptr, n, 1e-5F, x.data());
    EXPECT_TRUE(std::isfinite(x.front()));
  }
}

TEST(Elementwise, SoftCapsStayBelowTheCap) {
  float x[] = {0.0F, 1.0F, -100.0F, 1e30F};
  soft_cap(30.0F, 4, x);
  EXPECT_EQ(x[0], 0.0F);
  EXPECT_NEAR(static_cast<double>(x[1]), 30 * std::tanh(1.0 / 30), kTolerance);
  EXPECT_NEAR(static_cast<double>(x[2]), 30 * std::tanh(-100.0 / 30), 4 * kTolerance);
  EXPECT_EQ(x[3], 30.0F);
}

}  // namespace
}  // namespace plimsoll::kernels
