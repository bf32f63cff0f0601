// SPDX-License-Identifier: Apache-2.0
// Vectors of one head in a block of the cache, in the cache's own form, written from floats; attention reads
// them (kernels/attention.h). Owns nothing; as safe from several threads as the bytes are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "kernels/kernels.h"
#include "memory/cache_format.h"

namespace plimsoll::engine {

class CachedVectors {
 public:
  /// `elements`: of one vector; the vectors of a block's tokens follow each other, each behind its scale
  /// where the form has one. `format`: f32, bf16, fp8 (e4m3) or int8 with a scale in f32.
  CachedVectors(const kernels::Kernels& kernels, const memory::CacheFormat& format, std::int64_t elements)
      : kernels_(kernels),
        dtype_(format.dtype),
        elements_(elements),
        stride_(elements * info(format.dtype).block_bytes + format.scale.value) {}

  /// values: [elements], into the vector of token `slot` of the block.
  void write(const float* values, std::byte* vectors, std::int64_t slot) const {
    std::byte* const at = vectors + slot * stride_;
    switch (dtype_) {
      case DType::kF32:
        std::memcpy(at, values, static_cast<std::size_t>(elements_) * sizeof(float));
        return;
      case DType::kBF16:
        return kernels_.to_bf16(values, elements_, reinterpret_cast<std::uint16_t*>(at));
      case DType::kF8E4M3:
        return kernels_.to_e4m3(values, elements_, reinterpret_cast<std::uint8_t*>(at));
      default: {
        const float scale =
            kernels_.to_i8(values, elements_, reinterpret_cast<std::int8_t*>(at + sizeof(float)));
        std::memcpy(at, &scale, sizeof scale);
      }
    }
  }

  /// Bytes from one vector to the next.
  std::int64_t stride() const { return stride_; }

 private:
  const kernels::Kernels& kernels_;
  DType dtype_;
  std::int64_t elements_;
  std::int64_t stride_;  // bytes from one vector to the next
};

}  // namespace plimsoll::engine
