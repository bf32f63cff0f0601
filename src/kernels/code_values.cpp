// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <limits>

#include "kernels/kernels.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

using Values = std::array<float, 256>;

template <class ValueOf>
Values values_by(ValueOf value_of) {
  Values values{};
  for (int code = 0; code < 256; ++code)
    values[static_cast<std::size_t>(code)] = value_of(static_cast<std::uint8_t>(code));
  return values;
}

float int8_value(std::uint8_t code) {
  return static_cast<float>(static_cast<std::int8_t>(code));
}

// Bias 7, no infinities: all ones is NaN.
float e4m3_value(std::uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  if ((code & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  const float magnitude = exponent == 0 ? static_cast<float>(fraction) * 0x1p-9f
                                        : static_cast<float>(8 + fraction) *
                                              float_of_bits(static_cast<std::uint32_t>(exponent + 117) << 23);
  return code & 0x80 ? -magnitude : magnitude;
}

float e5m2_value(std::uint8_t code) {  // the upper half of an IEEE half
  return float_of_half(static_cast<std::uint16_t>(code << 8));
}

float e8m0_value(std::uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return code == 0 ? 0x1p-127f : float_of_bits(static_cast<std::uint32_t>(code) << 23);
}

float e2m1_value(std::uint8_t code) {
  constexpr float kMagnitudes[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return code & 8 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

}  // namespace

const float* code_values(DType dtype) {
  static const Values kInt8 = values_by(int8_value), kE4m3 = values_by(e4m3_value),
                      kE5m2 = values_by(e5m2_value), kE8m0 = values_by(e8m0_value),
                      kE2m1 = values_by(e2m1_value);
  switch (dtype) {
    case DType::kI8:
      return kInt8.data();
    case DType::kF8E4M3:
      return kE4m3.data();
    case DType::kF8E5M2:
      return kE5m2.data();
    case DType::kF8E8M0:
      return kE8m0.data();
    case DType::kF4:
      return kE2m1.data();
    default:
      return nullptr;
  }
}

}  // namespace plimsoll::kernels
