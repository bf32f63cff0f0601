// SPDX-License-Identifier: Apache-2.0
#include "kernels/scalar_panels.h"

#include <cmath>

#include "kernels/panel_forms.h"
#include "kernels/stored.h"

namespace plimsoll::kernels {
namespace {

using Byte = std::uint8_t;

float half_of(const Byte* halves, std::int64_t row) {
  return float_of_half(load_as<std::uint16_t>(halves + 2 * row));
}

/// Code k of a block of 32 of one row.
template <PanelForm kForm>
int code_at(const Byte* codes, std::int64_t row, int k) {
  const int step = k / 4;
  if constexpr (kForm.largest > 63) {
    return codes[kCodesOf4 * step + 4 * row + k % 4];
  } else {
    const Byte* const of_step = codes + kForm.code_bytes / kStepsOf4 * step;
    const std::int64_t half = row % (kPanelRows / 2), quarter = row % (kPanelRows / 4);
    int code = of_step[4 * half + k % 4] >> (row / (kPanelRows / 2) * 4) & 15;
    if constexpr (kForm.largest > 15)
      code |= (of_step[kNibblesOf4 + 4 * quarter + k % 4] >> (row / (kPanelRows / 4) * 2) & 3) << 4;
    return code;
  }
}

struct ScaleAndOffset {
  float scale = 0, offset = 0;
};

template <DType kType>
ScaleAndOffset scales_at(const Byte* header, const Byte* block, std::int64_t row, int group) {
  if constexpr (kType == DType::kQ4K)
    return {static_cast<float>(block[row]) * half_of(header, row),
            static_cast<float>(block[kPanelRows + row]) * -half_of(header + kRowHalves, row)};
  else if constexpr (kType == DType::kQ6K)
    return {static_cast<float>(static_cast<std::int8_t>(block[kPanelRows * group + row])) *
            half_of(header, row)};
  else if constexpr (kType == DType::kQ4_1)
    return {half_of(block, row), half_of(block + kRowHalves, row)};
  else
    return {half_of(block, row)};
}

template <DType kType>
float row_times_blocks(const Byte* panel, std::int64_t columns, std::int64_t row, const Int8Block* x,
                       int planes) {
  constexpr PanelForm kForm = kPanelForm<kType>;
  float total = 0;
  for (std::int64_t at = 0; at < columns; at += kForm.elements) {
    const Byte* const header = panel;
    panel += kForm.header_bytes;
    for (int i = 0; i < kForm.elements / kInt8Block; ++i, ++x, panel += kForm.block_bytes())
      for (int group = 0; group < kInt8Block / kForm.group; ++group) {
        int dot = 0, sum = 0;
        for (int k = group * kForm.group; k < (group + 1) * kForm.group; ++k) {
          int input = x->codes[k];
          if (planes == 2) input = kDigitOfTwo * input + x[columns / kInt8Block].codes[k];
          dot += (code_at<kForm>(panel + kForm.scale_bytes, row, k) - kForm.bias) * input;
          sum += input;
        }
        const ScaleAndOffset of = scales_at<kType>(header, panel, row, group);
        total = std::fma(of.scale * x->scale, static_cast<float>(dot), total);
        if constexpr (kForm.has_offset)
          total = std::fma(of.offset, x->scale * static_cast<float>(sum), total);
      }
  }
  return total;
}

}  // namespace

void scalar_panel_int8(const PanelProduct& product, const Int8Block* x) {
  const auto* const panel = reinterpret_cast<const Byte*>(product.panel);
  const std::int64_t blocks = product.columns / kInt8Block;
  for_panel_type(product.dtype, [&](auto type) {
    for (std::int64_t token = 0; token < product.tokens; ++token, x += product.planes * blocks)
      for (std::int64_t row = 0; row < product.rows; ++row) {
        float& out = product.out[token * product.out_stride + row];
        out = row_times_blocks<type()>(panel, product.columns, row, x, product.planes);
      }
  });
}

void scalar_panel_float(const PanelProduct& product, const float* x) {
  const auto* const pairs = reinterpret_cast<const Byte*>(product.panel);
  for (std::int64_t token = 0; token < product.tokens; ++token, x += product.columns)
    for (std::int64_t row = 0; row < product.rows; ++row) {
      float sum = 0;
      for (std::int64_t k = 0; k < product.columns; ++k) {
        const Byte* const at = pairs + (k / 2 * kPanelRows + row) * 4 + k % 2 * 2;
        sum = std::fma(float_of_bf16(load_as<std::uint16_t>(at)), x[k], sum);
      }
      product.out[token * product.out_stride + row] = sum;
    }
}

}  // namespace plimsoll::kernels
