// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace plimsoll::kernels {
namespace {

template <class Function>
void with_function(Activation activation, Function apply) {
  switch (activation) {
    case Activation::kSilu:
      return apply([](float x) { return x / (1.0F + std::exp(-x)); });
    case Activation::kGelu:
      return apply(
          [](float x) { return 0.5F * x * (1.0F + std::erf(x * (std::numbers::sqrt2_v<float> / 2))); });
    case Activation::kGeluTanh:
      return apply([](float x) {
        constexpr float kRoot = 0.79788456080286536F;  // sqrt(2 / pi)
        return 0.5F * x * (1.0F + std::tanh(kRoot * (x + 0.044715F * x * x * x)));
      });
    case Activation::kRelu:
      return apply([](float x) { return std::max(x, 0.0F); });
    case Activation::kRelu2:
      return apply([](float x) { return std::max(x, 0.0F) * std::max(x, 0.0F); });
  }
}

}  // namespace

void activate(Activation activation, std::int64_t n, float* x) {
  with_function(activation, [&](auto function) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = function(x[i]);
  });
}

void activate_gated(Activation activation, const float* gate, const float* up, std::int64_t n, float* out) {
  with_function(activation, [&](auto function) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = function(gate[i]) * up[i];
  });
}

void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float eps,
                float* out) {
  if (n <= 0) return;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(n);
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double distance = static_cast<double>(x[i]) - mean;
    squares += distance * distance;
  }
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto normed = static_cast<float>((static_cast<double>(x[i]) - mean) * scale);
    out[i] = normed * (weight ? weight[i] : 1.0F) + (bias ? bias[i] : 0.0F);
  }
}

float sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

float softplus(float x) {
  return x > 20.0F ? x : std::log1p(std::exp(x));  // beyond it e^x no longer adds to x
}

void clamped_swiglu(float alpha, float limit, const float* gate, const float* up, std::int64_t n,
                    float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = std::min(gate[i], limit), u = std::clamp(up[i], -limit, limit);
    out[i] = (u + 1.0F) * (g / (1.0F + std::exp(-alpha * g)));
  }
}

void xielu(const Xielu& curve, std::int64_t n, float* x) {
  const float a = softplus(curve.positive), b = curve.beta + softplus(curve.negative);
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = x[i];
    const float bent = value > 0 ? a * value * value : (std::expm1(std::min(value, curve.eps)) - value) * b;
    x[i] = bent + curve.beta * value;
  }
}

void gate_by_sigmoid(const float* gate, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] *= sigmoid(gate[i]);
}

void unit_norm(std::int64_t n, float eps, float* x) {
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(eps));
  for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(static_cast<double>(x[i]) * scale);
}

void soft_cap(float cap, std::int64_t n, float* x) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = cap * std::tanh(x[i] / cap);
}

}  // namespace plimsoll::kernels
