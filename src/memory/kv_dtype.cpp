// SPDX-License-Identifier: Apache-2.0
#include "memory/kv_dtype.h"

#include <string>

namespace plimsoll::memory {

Result<DType> kv_dtype(std::string_view asked, const model::ModelSpec& spec) {
  if (asked == "auto") {
    const bool is_half = spec.declared_dtype == DType::kF16 || spec.declared_dtype == DType::kBF16;
    return is_half ? *spec.declared_dtype : DType::kBF16;
  }
  if (asked == "fp8_e5m2") return DType::kF8E5M2;
  for (const std::string_view name : {"fp8", "fp8_e4m3", "fp8_inc", "fp8_ds_mla"})
    if (asked == name) return DType::kF8E4M3;
  if (const auto dtype = dtype_from_config(asked)) return *dtype;
  return fail(ErrorCode::kUsage,
              "\"" + std::string(asked.substr(0, 60)) + "\" is no type for keys and values",
              "--kv-cache-dtype", "give auto, bfloat16, float16, float32, fp8, fp8_e5m2, q8_0, ...");
}

}  // namespace plimsoll::memory
