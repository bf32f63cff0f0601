// SPDX-License-Identifier: Apache-2.0
#include "engine/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

namespace plimsoll::engine {
namespace {

using model::RopeKind;
using model::RopeSpec;

// Long wavelengths are divided by the factor, short ones kept, those between blended.
void scale_llama3(const RopeSpec& rope, std::vector<double>& frequencies) {
  const auto original = static_cast<double>(rope.original_context_tokens);
  for (double& frequency : frequencies) {
    const double wavelength = 2.0 * std::numbers::pi / frequency;
    if (wavelength < original / rope.high_frequency_factor) continue;
    if (wavelength > original / rope.low_frequency_factor) {
      frequency /= rope.factor;
      continue;
    }
    const double smooth = (original / wavelength - rope.low_frequency_factor) /
                          (rope.high_frequency_factor - rope.low_frequency_factor);
    frequency = (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
  }
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

float yarn_attention_factor(const RopeSpec& rope) {
  if (rope.attention_factor) return static_cast<float>(*rope.attention_factor);
  if (rope.mscale && rope.mscale_all_dim && *rope.mscale != 0.0 && *rope.mscale_all_dim != 0.0)
    return static_cast<float>(yarn_mscale(rope.factor, *rope.mscale) /
                              yarn_mscale(rope.factor, *rope.mscale_all_dim));
  return static_cast<float>(yarn_mscale(rope.factor, 1.0));
}

void scale_yarn(const RopeSpec& rope, std::vector<double>& frequencies) {
  const double dim = rope.rotary_dim;
  const auto correction_dim = [&](double rotations) {
    return dim *
           std::log(static_cast<double>(rope.original_context_tokens) /
                    (rotations * 2.0 * std::numbers::pi)) /
           (2.0 * std::log(rope.theta));
  };
  double low = correction_dim(rope.beta_fast);
  double high = correction_dim(rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / rope.factor * ramp + frequencies[i] * (1.0 - ramp);
  }
}

// Divides by the short list, or by the long one for requests that may grow beyond the original context.
float scale_longrope(const RopeSpec& rope, std::int64_t max_model_len, std::vector<double>& frequencies) {
  const bool is_long = max_model_len > rope.original_context_tokens;
  const auto& factors = is_long ? rope.long_factors : rope.short_factors;
  for (std::size_t i = 0; i < frequencies.size() && i < factors.size(); ++i) frequencies[i] /= factors[i];
  if (rope.attention_factor) return static_cast<float>(*rope.attention_factor);
  if (rope.factor <= 1.0) return 1.0F;
  return static_cast<float>(
      std::sqrt(1.0 + std::log(rope.factor) / std::log(static_cast<double>(rope.original_context_tokens))));
}

}  // namespace

Result<RopeTable> make_rope_table(const RopeSpec& rope, std::int64_t max_model_len,
                                  const std::vector<float>& frequency_divisors) {
  RopeTable table;
  std::vector<double> frequencies(static_cast<std::size_t>(rope.rotary_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i)
    frequencies[i] = 1.0 / std::pow(rope.theta, 2.0 * static_cast<double>(i) / rope.rotary_dim);
  switch (rope.kind) {
    case RopeKind::kNone:
    case RopeKind::kDefault:
      break;
    case RopeKind::kLinear:
      for (double& frequency : frequencies) frequency /= rope.factor;
      break;
    case RopeKind::kDynamic:
      if (max_model_len > rope.original_context_tokens)
        return fail(ErrorCode::kUnsupported,
                    "dynamic rope scaling beyond the native context of " +
                        std::to_string(rope.original_context_tokens) + " tokens is not served",
                    "config.json: /rope_scaling",
                    "give --max-model-len " + std::to_string(rope.original_context_tokens));
      break;
    case RopeKind::kLlama3:
      if (frequency_divisors.empty()) scale_llama3(rope, frequencies);
      break;
    case RopeKind::kYarn:
      scale_yarn(rope, frequencies);
      table.attention_factor = yarn_attention_factor(rope);
      break;
    case RopeKind::kLongrope:
      table.attention_factor = scale_longrope(rope, max_model_len, frequencies);
      break;
  }
  for (std::size_t i = 0; i < frequencies.size() && i < frequency_divisors.size(); ++i)
    frequencies[i] /= frequency_divisors[i];
  table.inverse_frequencies.assign(frequencies.begin(), frequencies.end());
  return table;
}

void rope_angles(const RopeTable& table, std::int64_t position, float* cosines, float* sines) {
  for (std::size_t i = 0; i < table.inverse_frequencies.size(); ++i) {
    const float angle = static_cast<float>(position) * table.inverse_frequencies[i];
    cosines[i] = std::cos(angle) * table.attention_factor;
    sines[i] = std::sin(angle) * table.attention_factor;
  }
}

}  // namespace plimsoll::engine
