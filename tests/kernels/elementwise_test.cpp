// SPDX-License-Identifier: Apache-2.0
// Against the definitions in double precision.
#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Elementwise, ClampedSwigluHoldsBothWithinTheLimit) {
  const auto gate = numbers(33);
  std::vector<float> up(gate.rbegin(), gate.rend()), out(gate.size());
  up[0] = -100;
  clamped_swiglu(1.7F, 2.0F, gate.data(), up.data(), 33, out.data());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = std::min(static_cast<double>(gate[i]), 2.0);
    const double u = std::min(std::max(static_cast<double>(up[i]), -2.0), 2.0);
    EXPECT_NEAR(static_cast<double>(out[i]), g / (1 + std::exp(-1.7 * g)) * (u + 1), kTolerance);
  }
}

TEST(Elementwise, XieluBendsBothSidesApart) {
  const Xielu curve{.positive = 0.3F, .negative = -0.4F, .beta = 0.5F, .eps = -1e-6F};
  auto x = numbers(33);
  const auto before = x;
  xielu(curve, 33, x.data());
  const double a = std::log1p(std::exp(0.3)), b = 0.5 + std::log1p(std::exp(-0.4));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto value = static_cast<double>(before[i]);
    const double expected = value > 0 ? a * value * value + value / 2
                                      : b * (std::expm1(std::min(value, -1e-6)) - value) + value / 2;
    EXPECT_NEAR(static_cast<double>(x[i]), expected, 4 * kTolerance);
  }
}

TEST(Elementwise, UnitNormLeavesAMeanSquareOfOne) {
  auto x = numbers(33);
  unit_norm(33, 0.0F, x.data());
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(squares / 33, 1.0, kTolerance);
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
