// SPDX-License-Identifier: Apache-2.0
// In which form does a cache keep a vector: the keys or the values of one token and head, or a latent? Its
// numbers' type, and what stands beside them. Values only.
#pragma once

#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"

namespace plimsoll::memory {

struct CacheFormat {
  DType dtype = DType::kBF16;
  Bytes scale = {};  // of each vector, beside its numbers

  constexpr CacheFormat(DType type, Bytes bytes_of_scale = {}) : dtype(type), scale(bytes_of_scale) {}
  bool operator==(const CacheFormat&) const = default;
};

/// The form that `--kv-cache-dtype` asks the embedded engine for; nothing for `auto`.
/// Errors: kUnsupported for a type that other engines keep, kUsage for a name that is none.
/// Source: docs/formulas/embedded_engine.md, section 1.
Result<std::optional<CacheFormat>> embedded_cache_format(std::string_view asked);
/// bf16 f32 fp8 int8
std::string_view to_string(const CacheFormat& format);

}  // namespace plimsoll::memory
