// SPDX-License-Identifier: Apache-2.0
#include "base/dtype.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/text.h"

namespace plimsoll {
namespace {

// Sizes: safetensors' format page, and ggml's block structs (bits are in docs/formats/gguf.md).
// F4 packs two elements in a byte, F6 four in three. Column 5 marks safetensors names, column 6 is the ggml
// type number.
constexpr std::array<DTypeInfo, 48> kTypes{{
    {DType::kF64, "f64", 1, 8, true, 28},
    {DType::kF32, "f32", 1, 4, true, 0},
    {DType::kF16, "f16", 1, 2, true, 1},
    {DType::kBF16, "bf16", 1, 2, true, 30},
    {DType::kI64, "i64", 1, 8, true, 27},
    {DType::kI32, "i32", 1, 4, true, 26},
    {DType::kI16, "i16", 1, 2, true, 25},
    {DType::kI8, "i8", 1, 1, true, 24},
    {DType::kU64, "u64", 1, 8, true, -1},
    {DType::kU32, "u32", 1, 4, true, -1},
    {DType::kU16, "u16", 1, 2, true, -1},
    {DType::kU8, "u8", 1, 1, true, -1},
    {DType::kBool, "bool", 1, 1, true, -1},
    {DType::kF8E4M3, "f8_e4m3", 1, 1, true, -1},
    {DType::kF8E5M2, "f8_e5m2", 1, 1, true, -1},
    {DType::kF8E8M0, "f8_e8m0", 1, 1, true, -1},
    {DType::kF4, "f4", 2, 1, true, -1},
    {DType::kC64, "c64", 1, 8, true, -1},
    {DType::kQ4_0, "q4_0", 32, 18, false, 2},
    {DType::kQ4_1, "q4_1", 32, 20, false, 3},
    {DType::kQ5_0, "q5_0", 32, 22, false, 6},
    {DType::kQ5_1, "q5_1", 32, 24, false, 7},
    {DType::kQ8_0, "q8_0", 32, 34, false, 8},
    {DType::kQ8_1, "q8_1", 32, 36, false, 9},
    {DType::kQ2K, "q2_k", 256, 84, false, 10},
    {DType::kQ3K, "q3_k", 256, 110, false, 11},
    {DType::kQ4K, "q4_k", 256, 144, false, 12},
    {DType::kQ5K, "q5_k", 256, 176, false, 13},
    {DType::kQ6K, "q6_k", 256, 210, false, 14},
    {DType::kQ8K, "q8_k", 256, 292, false, 15},
    {DType::kIQ2XXS, "iq2_xxs", 256, 66, false, 16},
    {DType::kIQ2XS, "iq2_xs", 256, 74, false, 17},
    {DType::kIQ3XXS, "iq3_xxs", 256, 98, false, 18},
    {DType::kIQ1S, "iq1_s", 256, 50, false, 19},
    {DType::kIQ4NL, "iq4_nl", 32, 18, false, 20},
    {DType::kIQ3S, "iq3_s", 256, 110, false, 21},
    {DType::kIQ2S, "iq2_s", 256, 82, false, 22},
    {DType::kIQ4XS, "iq4_xs", 256, 136, false, 23},
    {DType::kIQ1M, "iq1_m", 256, 56, false, 29},
    {DType::kTQ1_0, "tq1_0", 256, 54, false, 34},
    {DType::kTQ2_0, "tq2_0", 256, 66, false, 35},
    {DType::kMXFP4, "mxfp4", 32, 17, false, 39},
    {DType::kNVFP4, "nvfp4", 64, 36, false, 40},
    {DType::kF6E2M3, "f6_e2m3", 4, 3, true, -1},
    {DType::kF6E3M2, "f6_e3m2", 4, 3, true, -1},
    {DType::kF8E4M3FNUZ, "f8_e4m3fnuz", 1, 1, true, -1},
    {DType::kF8E5M2FNUZ, "f8_e5m2fnuz", 1, 1, true, -1},
    {DType::kQ1_0, "q1_0", 128, 18, false, 41},
}};

}  // namespace

const DTypeInfo& info(DType dtype) {
  const auto& row = kTypes[static_cast<std::size_t>(dtype)];
  PLIMSOLL_DCHECK(row.dtype == dtype, "the dtype table is in the order of the enum");
  return row;
}

bool is_block_quantized(DType dtype) {
  return info(dtype).gguf_type >= 0 && info(dtype).block_elements > 1;
}

std::optional<DType> dtype_from_safetensors(std::string_view spelling) {
  for (const auto& row : kTypes)
    if (row.is_safetensors && lower_ascii(spelling) == row.name && lower_ascii(spelling) != spelling)
      return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_gguf(std::uint32_t ggml_type) {
  for (const auto& row : kTypes)
    if (row.gguf_type >= 0 && static_cast<std::uint32_t>(row.gguf_type) == ggml_type) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_config(std::string_view spelling) {
  constexpr std::array<std::pair<std::string_view, DType>, 10> kAliases{{
      {"bfloat16", DType::kBF16},
      {"float16", DType::kF16},
      {"half", DType::kF16},
      {"fp16", DType::kF16},
      {"float32", DType::kF32},
      {"float", DType::kF32},
      {"fp32", DType::kF32},
      {"float64", DType::kF64},
      {"float8_e4m3fn", DType::kF8E4M3},
      {"float8_e5m2", DType::kF8E5M2},
  }};
  std::string text = lower_ascii(spelling);
  if (text.rfind("torch.", 0) == 0) text.erase(0, 6);
  for (const auto& [alias, dtype] : kAliases)
    if (alias == text) return dtype;
  for (const auto& row : kTypes)
    if (row.name == text) return row.dtype;
  return std::nullopt;
}

std::optional<Bytes> stored_bytes(DType dtype, std::int64_t elements) {
  const auto& row = info(dtype);
  if (elements < 0 || elements % row.block_elements != 0) return std::nullopt;
  const auto bytes = checked_product(elements / row.block_elements, row.block_bytes);
  if (!bytes) return std::nullopt;
  return Bytes(*bytes);
}

}  // namespace plimsoll
