// SPDX-License-Identifier: Apache-2.0
// In which type are keys and values kept? One reading of --kv-cache-dtype for inspect and plan. Pure.
#pragma once

#include <string_view>

#include "base/dtype.h"
#include "base/result.h"
#include "model/model.h"

namespace plimsoll::memory {

/// The type that `--kv-cache-dtype` asks for. `auto`: the model's own 16 bit type, else bf16. All forms of
/// fp8 take a byte. Errors: kUsage for a name that is none. Source: docs/formulas/kv_cache.md, section 1.
Result<DType> kv_dtype(std::string_view asked, const model::ModelSpec& spec);

}  // namespace plimsoll::memory
