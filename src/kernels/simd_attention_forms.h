// SPDX-License-Identifier: Apache-2.0
// How attention reads the vectors of each form of cache, for any V (vec_*.h). load<V>(row, d): elements
// [d, d + kLanes); with n the first n of them and zeros. factor(row, n): what the whole vector is to be
// multiplied with, NaN where that makes it no number. Static throughout.
#pragma once

#include "kernels/simd_blocks.h"

namespace plimsoll::kernels {

/// Plain numbers (simd_blocks.h) behind kOffset bytes.
template <class Plain, int kOffset>
struct VectorForm {
  static constexpr bool kIsPairs = false, kHasFactors = false;
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* row, std::int64_t d) {
    return Plain::template load<V>(row + kOffset + d * Plain::kBytes);
  }
  template <class V>
  static PLIMSOLL_INLINE typename V::F load(const Byte* row, std::int64_t d, std::int64_t n) {
    return n >= V::kLanes ? load<V>(row, d)
                          : Plain::template load_first<V>(row + kOffset + d * Plain::kBytes, n);
  }
  static float factor(const Byte*, std::int64_t) { return 1.0f; }
};

struct FormF32 : VectorForm<PlainF32, 0> {};
struct FormBF16 : VectorForm<PlainBF16, 0> {
  static constexpr bool kIsPairs = true;  // two numbers in a lane
};
struct FormE4m3 : VectorForm<PlainE4m3, 0> {
  static constexpr bool kHasFactors = true;
  static float factor(const Byte* row, std::int64_t n) {
    return has_e4m3_nan(row, n) ? __builtin_nanf("") : kHalfToE4m3;
  }
};
struct FormI8 : VectorForm<PlainI8, sizeof(float)> {
  static constexpr bool kHasFactors = true;
  static float factor(const Byte* row, std::int64_t) { return load_as<float>(row); }
};

/// use(FormF32{}) or another, as the type says; nothing for a type that no cache has.
template <class Use>
static PLIMSOLL_INLINE void for_form(DType dtype, Use use) {
  switch (dtype) {
    case DType::kF32:
      return use(FormF32{});
    case DType::kBF16:
      return use(FormBF16{});
    case DType::kF8E4M3:
      return use(FormE4m3{});
    case DType::kI8:
      return use(FormI8{});
    default:
      return;
  }
}

}  // namespace plimsoll::kernels
