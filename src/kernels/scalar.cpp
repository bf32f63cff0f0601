// SPDX-License-Identifier: Apache-2.0
// The plain table: the reference of the wider ones, and all there is on other processors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/int8_blocks.h"
#include "kernels/scalar_attention.h"
#include "kernels/scalar_blocks.h"
#include "kernels/scalar_panels.h"
#include "kernels/stored.h"
#include "kernels/tables.h"

namespace plimsoll::kernels {
namespace {

// Eight partial sums break the chain of additions; element k always goes to sum k % 8.
constexpr int kLanes = 8;

template <class Stored, class Widen>
float dot(const float* a, const Stored* b, std::int64_t n, Widen widen) {
  float sums[kLanes] = {};
  std::int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += a[k + lane] * widen(b[k + lane]);
  for (int lane = 0; k < n; ++k, ++lane) sums[lane] += a[k] * widen(b[k]);
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

float dot_f32(const float* a, const float* b, std::int64_t n) {
  return dot(a, b, n, [](float value) { return value; });
}

float dot_bf16(const float* a, const std::uint16_t* b, std::int64_t n) {
  return dot(a, b, n, float_of_bf16);
}

float dot_e4m3(const float* a, const std::uint8_t* b, std::int64_t n) {
  const float* const values = code_values(DType::kF8E4M3);
  return dot(a, b, n, [values](std::uint8_t code) { return values[code]; });
}

float dot_i8(const float* a, const std::int8_t* b, std::int64_t n) {
  return dot(a, b, n, [](std::int8_t code) { return static_cast<float>(code); });
}

void to_bf16(const float* values, std::int64_t elements, std::uint16_t* out) {
  for (std::int64_t i = 0; i < elements; ++i) out[i] = bf16_of_float(values[i]);
}

void to_e4m3(const float* values, std::int64_t elements, std::uint8_t* out) {
  for (std::int64_t i = 0; i < elements; ++i) out[i] = e4m3_of_float(values[i]);
}

float to_i8(const float* values, std::int64_t elements, std::int8_t* out) {
  return int8_of_floats(values, elements, out);
}

void matmul(DType dtype, const std::byte* w, std::int64_t columns, std::int64_t row_begin,
            std::int64_t row_end, const float* x, std::int64_t tokens, float* out, std::int64_t out_stride,
            float* scratch) {
  const std::int64_t row_bytes = columns / info(dtype).block_elements * info(dtype).block_bytes;
  const bool is_float_array =
      dtype == DType::kF32 && reinterpret_cast<std::uintptr_t>(w) % alignof(float) == 0;
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const float* widened = scratch;
    if (is_float_array)
      widened = reinterpret_cast<const float*>(w + row * row_bytes);
    else
      scalar_to_float(dtype, w + row * row_bytes, columns, scratch);
    for (std::int64_t token = 0; token < tokens; ++token)
      out[token * out_stride + row] = dot_f32(x + token * columns, widened, columns);
  }
}

void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out) {
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const float mean = n > 0 ? static_cast<float>(squares / static_cast<double>(n)) : 0.0f;
  const float scale = 1.0f / std::sqrt(mean + eps);
  for (std::int64_t i = 0; i < n; ++i) out[i] = x[i] * scale * weight[i];
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void add_scaled_f32(float scale, const float* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += scale * x[i];
}

void add_scaled_bf16(float scale, const std::uint16_t* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += scale * float_of_bf16(x[i]);
}

void add_scaled_e4m3(float scale, const std::uint8_t* x, std::int64_t n, float* out) {
  const float* const values = code_values(DType::kF8E4M3);
  for (std::int64_t i = 0; i < n; ++i) out[i] += scale * values[x[i]];
}

void add_scaled_i8(float scale, const std::int8_t* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] += scale * static_cast<float>(x[i]);
}

void exp_scaled(float scale, const float* x, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = std::exp(scale * x[i]);
}

float largest(const float* x, std::int64_t n) {
  float found = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < n; ++i) found = x[i] > found ? x[i] : found;
  return found;
}

float recur(const Recurrence& token, std::int64_t n, float* row) {
  for (std::int64_t i = 0; i < n; ++i) row[i] *= token.decays ? token.decays[i] : token.decay;
  float change = token.value;
  if (token.is_delta) change = (token.value - dot_f32(row, token.key, n)) * token.beta;
  add_scaled_f32(change, token.key, n, row);
  return dot_f32(row, token.query, n);
}

void rotate_heads(float* x, int heads, int head_dim, int rotary_dim, bool interleaved, const float* cos,
                  const float* sin) {
  const int pairs = rotary_dim / 2;
  const int step = interleaved ? 2 : 1, distance = interleaved ? 1 : pairs;
  for (int head = 0; head < heads; ++head, x += head_dim)
    for (int i = 0; i < pairs; ++i) {
      float& a = x[i * step];
      float& b = x[i * step + distance];
      const float rotated = a * cos[i] - b * sin[i];
      b = b * cos[i] + a * sin[i];
      a = rotated;
    }
}

void to_probabilities(float* scores, std::int64_t n) {
  float highest = -std::numeric_limits<float>::infinity();
  for (std::int64_t i = 0; i < n; ++i) highest = std::max(highest, scores[i]);
  double sum = 0;  // thousands of terms in one chain
  for (std::int64_t i = 0; i < n; ++i) {
    scores[i] = std::exp(scores[i] - highest);
    sum += static_cast<double>(scores[i]);
  }
  const auto scale = static_cast<float>(1.0 / sum);
  for (std::int64_t i = 0; i < n; ++i) scores[i] *= scale;
}

}  // namespace

const Kernels kScalarKernels{Isa::kScalar,
                             scalar_to_float,
                             to_bf16,
                             to_e4m3,
                             to_i8,
                             matmul,
                             round_blocks,
                             nullptr,
                             scalar_panel_int8,
                             scalar_panel_float,
                             nullptr,
                             rms_norm,
                             silu_mul,
                             dot_f32,
                             dot_bf16,
                             dot_e4m3,
                             dot_i8,
                             add_scaled_f32,
                             add_scaled_bf16,
                             add_scaled_e4m3,
                             add_scaled_i8,
                             exp_scaled,
                             largest,
                             recur,
                             rotate_heads,
                             to_probabilities,
                             scalar_attend_split,
                             scalar_merge_parts,
                             scalar_finish_part};

}  // namespace plimsoll::kernels
