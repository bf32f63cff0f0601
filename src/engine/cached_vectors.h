// SPDX-License-Identifier: Apache-2.0
// Vectors of one head in a block of the cache, in the cache's own type: written from floats, read in products
// and sums. Owns nothing; as safe from several threads as the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "kernels/kernels.h"

namespace plimsoll::engine {

class CachedVectors {
 public:
  /// `elements`: of one vector; the vectors of a block's tokens follow each other. `dtype`: f32 or bf16.
  CachedVectors(const kernels::Kernels& kernels, DType dtype, std::int64_t elements)
      : kernels_(kernels), is_f32_(dtype == DType::kF32), elements_(elements) {}

  /// values: [elements], into the vector of token `slot` of the block.
  void write(const float* values, std::byte* vectors, std::int64_t slot) const {
    if (is_f32_)
      std::memcpy(reinterpret_cast<float*>(vectors) + slot * elements_, values,
                  static_cast<std::size_t>(elements_) * sizeof(float));
    else
      kernels_.to_bf16(values, elements_, reinterpret_cast<std::uint16_t*>(vectors) + slot * elements_);
  }

  /// sum_i x[i] * vector[i].  x: [elements]
  float dot(const float* x, const std::byte* vectors, std::int64_t slot) const {
    return is_f32_
               ? kernels_.dot_f32(x, reinterpret_cast<const float*>(vectors) + slot * elements_, elements_)
               : kernels_.dot_bf16(x, reinterpret_cast<const std::uint16_t*>(vectors) + slot * elements_,
                                   elements_);
  }

  /// out[i] += scale * vector[i] for the first `count`.
  void add_scaled(float scale, const std::byte* vectors, std::int64_t slot, std::int64_t count,
                  float* out) const {
    if (is_f32_)
      kernels_.add_scaled_f32(scale, reinterpret_cast<const float*>(vectors) + slot * elements_, count, out);
    else
      kernels_.add_scaled_bf16(scale, reinterpret_cast<const std::uint16_t*>(vectors) + slot * elements_,
                               count, out);
  }

 private:
  const kernels::Kernels& kernels_;
  bool is_f32_;
  std::int64_t elements_;
};

}  // namespace plimsoll::engine
