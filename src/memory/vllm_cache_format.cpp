// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_cache_format.h"

#include <algorithm>
#include <iterator>

#include "base/division.h"

namespace plimsoll::memory {
namespace {

using F = VllmCacheFormats;

constexpr VllmCacheFormat turboquant(std::string_view name, int key_bits, int value_bits) {
  return {.name = name,
          .key_bits = key_bits,
          .value_bits = value_bits,
          .key_extra = key_bits == 8 ? 0 : 2,  // the vector's norm
          .value_extra = 4,                    // scale and zero point
          .is_even = true,
          .skips_ends = true};
}

constexpr VllmCacheFormat per_token_head(std::string_view name, int bits, F since) {
  return {.name = name,
          .key_bits = bits,
          .value_bits = bits,
          .key_extra = 4,
          .value_extra = 4,
          .for_latent = bits == 8,
          .since = since};
}

constexpr VllmCacheFormat kFormats[] = {
    per_token_head("int8_per_token_head", 8, F::kPacked),
    per_token_head("fp8_per_token_head", 8, F::kPacked),
    per_token_head("int4_per_token_head", 4, F::kPackedInt4),
    {.name = "nvfp4", .key_bits = 4, .value_bits = 4, .scale_group = 16},
    turboquant("turboquant_k8v4", 8, 4),
    turboquant("turboquant_4bit_nc", 4, 4),
    turboquant("turboquant_k3v4_nc", 3, 4),
    turboquant("turboquant_3bit_nc", 3, 3),
};

std::int64_t side(std::int64_t width, int bits, int extra, int group) {
  return divided_up(width * bits, 8) + extra + (group > 0 ? width / group : 0);
}

}  // namespace

const VllmCacheFormat* find_vllm_cache_format(std::string_view name) {
  const auto* const found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                         [&](const VllmCacheFormat& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

Bytes vllm_head_bytes(const VllmCacheFormat& format, std::int64_t key_width, std::int64_t value_width) {
  std::int64_t bytes = side(key_width, format.key_bits, format.key_extra, format.scale_group);
  // A latent vector is all key, and has both scales.
  bytes += value_width > 0 ? side(value_width, format.value_bits, format.value_extra, format.scale_group)
                           : format.value_extra;
  return Bytes(format.is_even ? bytes + bytes % 2 : bytes);
}

}  // namespace plimsoll::memory
