// SPDX-License-Identifier: Apache-2.0
// Where do codes and scales lie in a panel? Shared by packing and by the products of every instruction set.
// Constants only. Source: docs/formats/panels.md.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/panels.h"

namespace plimsoll::kernels {

/// What a panel's rows share out of `elements` numbers each: a header, then blocks of 32 numbers, each of
/// which begins with its scales.
struct PanelForm {   // members are inlined: no copy of one instruction set may serve another
  int elements;      // per header
  int header_bytes;  // 32 halves d; of types with minima 32 halves more
  int scale_bytes;   // of a block
  int code_bytes;    // of a block
  int group;         // numbers under one scale
  int bias;          // what the codes stand above the numbers
  int largest;       // code
  bool has_offset;

  __attribute__((always_inline)) constexpr int block_bytes() const { return scale_bytes + code_bytes; }
  __attribute__((always_inline)) constexpr std::int64_t bytes(std::int64_t columns) const {
    return columns / elements * (header_bytes + elements / kInt8Block * block_bytes());
  }
};

constexpr int kRowHalves = 2 * kPanelRows;  // bytes of a half for each row
constexpr int kNibbles = 16 * kPanelRows;   // bytes of 32 codes of four bits for each row
constexpr int kCodesOf4 = 4 * kPanelRows;   // bytes of 4 codes of eight bits for each row
constexpr int kNibblesOf4 = kCodesOf4 / 2;
constexpr int kStepsOf4 = kInt8Block / 4;  // in a block

template <DType kType>
constexpr PanelForm kPanelForm{};
template <>
constexpr PanelForm kPanelForm<DType::kQ4_0>{32, 0, kRowHalves, kNibbles, 32, 8, 15, false};
template <>
constexpr PanelForm kPanelForm<DType::kQ4_1>{32, 0, 2 * kRowHalves, kNibbles, 32, 0, 15, true};
template <>
constexpr PanelForm kPanelForm<DType::kQ8_0>{32, 0, kRowHalves, 2 * kNibbles, 32, 128, 255, false};
template <>
constexpr PanelForm kPanelForm<DType::kQ4K>{256, 2 * kRowHalves, kRowHalves, kNibbles, 32, 0, 15, true};
template <>
constexpr PanelForm kPanelForm<DType::kQ6K>{256, kRowHalves, kRowHalves, kNibbles * 3 / 2, 16, 32, 63, false};

/// Calls use(std::integral_constant<DType, ...>) for a type of whole numbers that has panels.
template <class Use>
constexpr void for_panel_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::kQ4_0:
      return use(std::integral_constant<DType, DType::kQ4_0>{});
    case DType::kQ4_1:
      return use(std::integral_constant<DType, DType::kQ4_1>{});
    case DType::kQ8_0:
      return use(std::integral_constant<DType, DType::kQ8_0>{});
    case DType::kQ4K:
      return use(std::integral_constant<DType, DType::kQ4K>{});
    case DType::kQ6K:
      return use(std::integral_constant<DType, DType::kQ6K>{});
    default:
      return;
  }
}

}  // namespace plimsoll::kernels
