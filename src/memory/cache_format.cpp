// SPDX-License-Identifier: Apache-2.0
#include "memory/cache_format.h"

#include <string>

#include "memory/kv_dtype.h"
#include "memory/vllm_cache_format.h"

namespace plimsoll::memory {
namespace {

struct Row {
  std::string_view spelling;
  CacheFormat format;
};
// The first of a form is its name.
constexpr Row kRows[] = {
    {"bf16", DType::kBF16},
    {"bfloat16", DType::kBF16},
    {"f32", DType::kF32},
    {"float32", DType::kF32},
    {"fp8", DType::kF8E4M3},
    {"fp8_e4m3", DType::kF8E4M3},
    {"int8", {DType::kI8, Bytes(sizeof(float))}},
    {"int8_per_token_head", {DType::kI8, Bytes(sizeof(float))}},
};

}  // namespace

Result<std::optional<CacheFormat>> embedded_cache_format(std::string_view asked) {
  if (asked == "auto") return std::optional<CacheFormat>();
  for (const Row& row : kRows)
    if (row.spelling == asked) return std::optional(row.format);
  const std::string name(asked.substr(0, 60));
  if (!find_vllm_cache_format(asked) && !kv_dtype(asked, {}))
    return fail(ErrorCode::kUsage, "\"" + name + "\" is no type for keys and values", "--kv-cache-dtype",
                "give auto, bfloat16, float32, fp8 or int8");
  return fail(ErrorCode::kUnsupported, "the embedded engine does not keep keys and values as " + name,
              "--kv-cache-dtype", "give auto, bfloat16, float32, fp8 or int8, or plan for another engine");
}

std::string_view to_string(const CacheFormat& format) {
  for (const Row& row : kRows)
    if (row.format == format) return row.spelling;
  return name(format.dtype);
}

}  // namespace plimsoll::memory
