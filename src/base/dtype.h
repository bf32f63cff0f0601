// SPDX-License-Identifier: Apache-2.0
// How numbers are stored: one row per element or block type of safetensors and GGUF, with its size.
// Knows sizes and names only; turning blocks into floats is the kernels room's work.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace plimsoll {

enum class DType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kF4,
  kC64,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ8_1,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
  kQ8K,
  kIQ2XXS,
  kIQ2XS,
  kIQ3XXS,
  kIQ1S,
  kIQ4NL,
  kIQ3S,
  kIQ2S,
  kIQ4XS,
  kIQ1M,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  kF6E2M3,
  kF6E3M2,
  kF8E4M3FNUZ,
  kF8E5M2FNUZ,
  kQ1_0,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;        // lower case, the format's own spelling: bf16, f8_e4m3, q4_0, iq4_xs
  std::int64_t block_elements;  // elements that are stored together; 1 for plain numbers
  std::int64_t block_bytes;     // bytes of one such block
  bool is_safetensors;          // `name` in upper case is a safetensors dtype
  int gguf_type;                // ggml type number; -1: not a GGUF type
};

const DTypeInfo& info(DType dtype);
inline std::string_view name(DType dtype) {
  return info(dtype).name;
}
/// True for block-quantized types (more than one element per block).
bool is_block_quantized(DType dtype);

std::optional<DType> dtype_from_safetensors(std::string_view spelling);  // "BF16", "F8_E4M3"
std::optional<DType> dtype_from_gguf(std::uint32_t ggml_type);
/// From configs and flags: bfloat16 bf16 float16 f16 half float32 f32 float ...
std::optional<DType> dtype_from_config(std::string_view spelling);

/// Bytes that `elements` numbers take; nothing when they do not fill whole blocks or the size overflows.
std::optional<Bytes> stored_bytes(DType dtype, std::int64_t elements);

}  // namespace plimsoll
