// SPDX-License-Identifier: Apache-2.0
// e^x for any V (vec_*.h): shared by the operations that need it. Static throughout.
#pragma once

#include "kernels/simd_blocks.h"

namespace plimsoll::kernels {

/// times(e^r, n), which is to be e^r * 2^n. Source: the Cephes library's expf: x = n ln 2 + r,
/// |r| <= ln 2 / 2, and a polynomial for e^r.
template <class V, class Times>
static PLIMSOLL_INLINE typename V::F power(typename V::F x, Times times) {
  using F = typename V::F;
  const F n = V::round(V::mul(x, V::set1(1.44269504088896341f)));
  // ln 2 in two parts; the first has so few bits that n times it is exact.
  F r = V::fma(n, V::set1(-0.693359375f), x);
  r = V::fma(n, V::set1(2.12194440e-4f), r);
  F p = V::set1(1.9875691500e-4f);
  p = V::fma(p, r, V::set1(1.3981999507e-3f));
  p = V::fma(p, r, V::set1(8.3334519073e-3f));
  p = V::fma(p, r, V::set1(4.1665795894e-2f));
  p = V::fma(p, r, V::set1(1.6666665459e-1f));
  p = V::fma(p, r, V::set1(5.0000001201e-1f));
  p = V::fma(p, V::mul(r, r), r);
  return times(V::add(p, V::set1(1.0f)), n);
}

/// e^x within 2 units in the last place; 0 below -104, infinity above 88.8, NaN for NaN.
template <class V>
static PLIMSOLL_INLINE typename V::F exponential(typename V::F x) {
  x = V::max(V::set1(-104.5f), V::min(V::set1(89.0f), x));
  return power<V>(x, [](auto p, auto n) { return V::times_power_of_2(p, n); });
}

/// The same for x <= 0 in fewer steps: 0 below -87, where e^x is no normal number; NaN for NaN.
template <class V>
static PLIMSOLL_INLINE typename V::F falling_exponential(typename V::F x) {
  return V::unless_below(x, -87.0f,
                         power<V>(x, [](auto p, auto n) { return V::times_normal_power_of_2(p, n); }));
}

}  // namespace plimsoll::kernels
