// SPDX-License-Identifier: Apache-2.0
// The element-wise operations for any V (vec_*.h); meanings and shapes are in kernels.h. Static throughout.
#pragma once

#include "kernels/simd_attention.h"
#include "kernels/simd_exponential.h"
#include "kernels/simd_int8.h"
#include "kernels/simd_matmul.h"

namespace plimsoll::kernels {

template <class V>
static void simd_to_bf16(const float* values, std::int64_t elements, std::uint16_t* out) {
  std::int64_t i = 0;
  for (; i + V::kLanes <= elements; i += V::kLanes) V::store_bf16(out + i, V::load(values + i));
  for (; i < elements; ++i) out[i] = bf16_of_float(values[i]);
}

template <class V>
static void simd_to_e4m3(const float* values, std::int64_t elements, std::uint8_t* out) {
  for (std::int64_t i = 0; i < elements; ++i) out[i] = e4m3_of_float(values[i]);
}

template <class V>
static float simd_to_i8(const float* values, std::int64_t elements, std::int8_t* out) {
  return int8_of_floats(values, elements, out);
}

/// sum_i a[i] * widened b[i]; four sums in turn, so that additions do not wait for each other.
template <class V, class P>
static float simd_dot(const float* a, const void* b, std::int64_t n) {
  const auto* const bytes = static_cast<const Byte*>(b);
  typename V::F sums[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
  std::int64_t i = 0;
  const auto add_product = [&](typename V::F& sum) __attribute__((always_inline)) {
    sum = V::fma(V::load(a + i), P::template load<V>(bytes + i * P::kBytes), sum);
    i += V::kLanes;
  };
  while (i + 4 * V::kLanes <= n) {
    add_product(sums[0]);
    add_product(sums[1]);
    add_product(sums[2]);
    add_product(sums[3]);
  }
  // Written out, for an index that is not a constant would keep the sums in memory.
  if (i + V::kLanes <= n) add_product(sums[0]);
  if (i + V::kLanes <= n) add_product(sums[1]);
  if (i + V::kLanes <= n) add_product(sums[2]);
  if (i < n)
    sums[3] =
        V::fma(V::load_first(a + i, n - i), P::template load_first<V>(bytes + i * P::kBytes, n - i), sums[3]);
  return V::sum(V::add(V::add(sums[0], sums[1]), V::add(sums[2], sums[3])));
}

template <class V>
static float simd_dot_f32(const float* a, const float* b, std::int64_t n) {
  return simd_dot<V, PlainF32>(a, b, n);
}

template <class V>
static float simd_dot_bf16(const float* a, const std::uint16_t* b, std::int64_t n) {
  return simd_dot<V, PlainBF16>(a, b, n);
}

template <class V>
static float simd_dot_e4m3(const float* a, const std::uint8_t* b, std::int64_t n) {
  return has_e4m3_nan(b, n) ? __builtin_nanf("") : simd_dot<V, PlainE4m3>(a, b, n) * kHalfToE4m3;
}

template <class V>
static float simd_dot_i8(const float* a, const std::int8_t* b, std::int64_t n) {
  return simd_dot<V, PlainI8>(a, b, n);
}

template <class V, class P>
static void simd_add_scaled(float scale, const void* x, std::int64_t n, float* out) {
  const auto* const bytes = static_cast<const Byte*>(x);
  const auto factor = V::set1(scale);
  std::int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes)
    V::store(out + i, V::fma(factor, P::template load<V>(bytes + i * P::kBytes), V::load(out + i)));
  if (i < n)
    V::store_first(out + i, n - i,
                   V::fma(factor, P::template load_first<V>(bytes + i * P::kBytes, n - i),
                          V::load_first(out + i, n - i)));
}

template <class V>
static void simd_add_scaled_f32(float scale, const float* x, std::int64_t n, float* out) {
  simd_add_scaled<V, PlainF32>(scale, x, n, out);
}

template <class V>
static void simd_add_scaled_bf16(float scale, const std::uint16_t* x, std::int64_t n, float* out) {
  simd_add_scaled<V, PlainBF16>(scale, x, n, out);
}

template <class V>
static void simd_add_scaled_e4m3(float scale, const std::uint8_t* x, std::int64_t n, float* out) {
  if (!has_e4m3_nan(x, n)) return simd_add_scaled<V, PlainE4m3>(scale * kHalfToE4m3, x, n, out);
  const float* const values = code_values(DType::kF8E4M3);
  for (std::int64_t i = 0; i < n; ++i) out[i] += scale * values[x[i]];
}

template <class V>
static void simd_add_scaled_i8(float scale, const std::int8_t* x, std::int64_t n, float* out) {
  simd_add_scaled<V, PlainI8>(scale, x, n, out);
}

template <class V>
static void simd_exp_scaled(float scale, const float* x, std::int64_t n, float* out) {
  const auto factor = V::set1(scale);
  std::int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes)
    V::store(out + i, exponential<V>(V::mul(factor, V::load(x + i))));
  if (i < n) V::store_first(out + i, n - i, exponential<V>(V::mul(factor, V::load_first(x + i, n - i))));
}

// The second of max() stays where the first is NaN. Four maxima side by side need not wait for each other.
template <class V>
static float simd_largest(const float* x, std::int64_t n) {
  constexpr std::int64_t kStep = 4 * V::kLanes;
  const auto least = V::set1(-__builtin_inff());
  typename V::F most[4] = {least, least, least, least};
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep)
    for (int part = 0; part < 4; ++part) most[part] = V::max(V::load(x + i + part * V::kLanes), most[part]);
  for (; i + V::kLanes <= n; i += V::kLanes) most[0] = V::max(V::load(x + i), most[0]);
  float found = V::largest(V::max(V::max(most[0], most[1]), V::max(most[2], most[3])));
  for (; i < n; ++i) found = x[i] > found ? x[i] : found;
  return found;
}

/// row *= decay in place, and its product with `other`.
template <class V>
static PLIMSOLL_INLINE float decay_and_dot(const Recurrence& token, std::int64_t n, const float* other,
                                           float* row) {
  auto sum = V::zero();
  const auto decay = V::set1(token.decay);
  std::int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const auto value = V::mul(V::load(row + i), token.decays ? V::load(token.decays + i) : decay);
    V::store(row + i, value);
    sum = V::fma(value, V::load(other + i), sum);
  }
  if (i < n) {
    const auto value =
        V::mul(V::load_first(row + i, n - i), token.decays ? V::load_first(token.decays + i, n - i) : decay);
    V::store_first(row + i, n - i, value);
    sum = V::fma(value, V::load_first(other + i, n - i), sum);
  }
  return V::sum(sum);
}

template <class V>
static float simd_recur(const Recurrence& token, std::int64_t n, float* row) {
  const float held = decay_and_dot<V>(token, n, token.key, row);
  const auto change = V::set1(token.is_delta ? (token.value - held) * token.beta : token.value);
  auto sum = V::zero();
  std::int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) {
    const auto value = V::fma(change, V::load(token.key + i), V::load(row + i));
    V::store(row + i, value);
    sum = V::fma(value, V::load(token.query + i), sum);
  }
  if (i < n) {
    const auto value = V::fma(change, V::load_first(token.key + i, n - i), V::load_first(row + i, n - i));
    V::store_first(row + i, n - i, value);
    sum = V::fma(value, V::load_first(token.query + i, n - i), sum);
  }
  return V::sum(sum);
}

/// out[i] = f(a[i], b[i]), the last few with zeros behind them.
template <class V, class Function>
static PLIMSOLL_INLINE void for_each_pair(const float* a, const float* b, std::int64_t n, float* out,
                                          Function f) {
  std::int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(out + i, f(V::load(a + i), V::load(b + i)));
  if (i < n) V::store_first(out + i, n - i, f(V::load_first(a + i, n - i), V::load_first(b + i, n - i)));
}

template <class V>
static void simd_rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out) {
  if (n <= 0) return;
  const float mean = simd_dot_f32<V>(x, x, n) / static_cast<float>(n);
  const auto scale = V::set1(1.0f / __builtin_sqrtf(mean + eps));
  for_each_pair<V>(x, weight, n, out, [scale](typename V::F value, typename V::F factor) {
    return V::mul(V::mul(value, scale), factor);
  });
}

template <class V>
static void simd_silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  const auto one = V::set1(1.0f), zero = V::zero();
  for_each_pair<V>(gate, up, n, out, [one, zero](typename V::F g, typename V::F u) {
    return V::mul(V::div(g, V::add(one, exponential<V>(V::sub(zero, g)))), u);
  });
}

template <class V>
static void simd_softmax(float* scores, std::int64_t n) {
  if (n <= 0) return;
  auto widest = V::set1(scores[0]);
  std::int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) widest = V::max(widest, V::load(scores + i));
  float highest = V::largest(widest);
  for (; i < n; ++i) highest = scores[i] > highest ? scores[i] : highest;

  const auto shift = V::set1(highest);
  auto sums = V::zero();
  for (i = 0; i + V::kLanes <= n; i += V::kLanes) {
    const auto value = exponential<V>(V::sub(V::load(scores + i), shift));
    V::store(scores + i, value);
    sums = V::add(sums, value);
  }
  if (i < n) {
    V::store_first(scores + i, n - i, exponential<V>(V::sub(V::load_first(scores + i, n - i), shift)));
    sums = V::add(sums, V::load_first(scores + i, n - i));  // zeros behind the last, not e^-shift
  }
  const auto scale = V::set1(1.0f / V::sum(sums));
  for (i = 0; i + V::kLanes <= n; i += V::kLanes) V::store(scores + i, V::mul(V::load(scores + i), scale));
  if (i < n) V::store_first(scores + i, n - i, V::mul(V::load_first(scores + i, n - i), scale));
}

template <class V>
static void simd_rope(float* x, int heads, int head_dim, int rotary_dim, bool interleaved, const float* cos,
                      const float* sin) {
  const int pairs = rotary_dim / 2;
  const int step = interleaved ? 2 : 1, distance = interleaved ? 1 : pairs;
  for (int head = 0; head < heads; ++head, x += head_dim) {
    int i = 0;
    if (!interleaved)
      for (; i + V::kLanes <= pairs; i += V::kLanes) {
        const auto a = V::load(x + i), b = V::load(x + pairs + i);
        const auto c = V::load(cos + i), s = V::load(sin + i);
        V::store(x + i, V::sub(V::mul(a, c), V::mul(b, s)));
        V::store(x + pairs + i, V::add(V::mul(b, c), V::mul(a, s)));
      }
    for (; i < pairs; ++i) {
      float& a = x[i * step];
      float& b = x[i * step + distance];
      const float rotated = a * cos[i] - b * sin[i];
      b = b * cos[i] + a * sin[i];
      a = rotated;
    }
  }
}

/// Products of panels, which differ more between instruction sets than a V can say.
struct PanelKernels {
  decltype(Kernels::panel_int8) int8;
  decltype(Kernels::panel_float) float32;
  decltype(Kernels::panel_bf16) bf16;
};

/// The table of one instruction set.
template <class V>
static constexpr Kernels simd_kernels(Isa isa, const PanelKernels& panels) {
  return {isa,
          simd_to_float<V>,
          simd_to_bf16<V>,
          simd_to_e4m3<V>,
          simd_to_i8<V>,
          simd_matmul<V>,
          round_blocks,
          simd_matmul_int8<V>,
          panels.int8,
          panels.float32,
          panels.bf16,
          simd_rms_norm<V>,
          simd_silu_mul<V>,
          simd_dot_f32<V>,
          simd_dot_bf16<V>,
          simd_dot_e4m3<V>,
          simd_dot_i8<V>,
          simd_add_scaled_f32<V>,
          simd_add_scaled_bf16<V>,
          simd_add_scaled_e4m3<V>,
          simd_add_scaled_i8<V>,
          simd_exp_scaled<V>,
          simd_largest<V>,
          simd_recur<V>,
          simd_rope<V>,
          simd_softmax<V>,
          simd_attend_split<V>,
          simd_merge_parts<V>,
          simd_finish_part<V>};
}

}  // namespace plimsoll::kernels
