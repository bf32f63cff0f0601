// SPDX-License-Identifier: Apache-2.0
// Element-wise arithmetic that only some architectures need: activations, norms of mean and variance, caps.
// Plain code, the same bits on every instruction set. Pure functions over arrays of the caller.
#pragma once

#include <cstdint>

namespace plimsoll::kernels {

enum class Activation {
  kSilu,      // x / (1 + e^-x)
  kGelu,      // x / 2 * (1 + erf(x / sqrt 2))
  kGeluTanh,  // x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
  kRelu,      // max(x, 0)
  kRelu2,     // its square
};

/// x[i] = activation(x[i]).  [n]
void activate(Activation activation, std::int64_t n, float* x);
/// out[i] = activation(gate[i]) * up[i].  [n]; out may be gate or up.
void activate_gated(Activation activation, const float* gate, const float* up, std::int64_t n, float* out);

/// out[i] = (x[i] - mean) / sqrt(variance + eps) * weight[i] + bias[i].  [n]; weight and bias may be null (1
/// and 0), out may be x.
void layer_norm(const float* x, const float* weight, const float* bias, std::int64_t n, float eps,
                float* out);

/// 1 / (1 + e^-x), and log(1 + e^x).
float sigmoid(float x);
float softplus(float x);

/// out[i] = g * sigmoid(alpha * g) * (u + 1) where g = min(gate[i], limit) and u = up[i] within +-limit. [n];
/// out may be gate or up. Source: transformers' GptOssExperts.
void clamped_swiglu(float alpha, float limit, const float* gate, const float* up, std::int64_t n, float* out);

/// What xIELU's curve depends on, as the file has it: the alphas pass a softplus.
struct Xielu {
  float positive = 0, negative = 0, beta = 0.5F, eps = -1e-6F;
};
/// x[i] = a x^2 + beta x above 0, b (expm1(min(x, eps)) - x) + beta x below, where a = softplus(positive) and
/// b = beta + softplus(negative).  [n]. Source: transformers' XIELUActivation.
void xielu(const Xielu& curve, std::int64_t n, float* x);

/// x[i] *= sigmoid(gate[i]).  [n]
void gate_by_sigmoid(const float* gate, std::int64_t n, float* x);

/// x[i] = x[i] / sqrt(mean(x^2) + eps).  [n]
void unit_norm(std::int64_t n, float eps, float* x);

/// x[i] = cap * tanh(x[i] / cap).  [n]
void soft_cap(float cap, std::int64_t n, float* x);

}  // namespace plimsoll::kernels
