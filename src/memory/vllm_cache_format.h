// SPDX-License-Identifier: Apache-2.0
// Which packed formats does vLLM keep keys and values in, besides 16 and 8 bit? One table. Constants; any
// thread may call. Source: docs/formulas/vllm_kv_cache.md, section 1.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/units.h"
#include "memory/vllm_rules.h"

namespace plimsoll::memory {

struct VllmCacheFormat {
  std::string_view name;  // as --kv-cache-dtype spells it
  int key_bits = 8, value_bits = 8;
  int key_extra = 0, value_extra = 0;  // bytes of scales beside a head's key and value
  int scale_group = 0;                 // values that share one more byte; 0: none
  bool is_even = false;                // a head's bytes are filled up to an even number
  bool skips_ends = false;             // the first and last two layers stay 16 bit, unless some keep states
  bool for_latent = false;             // latent vectors have it too
  VllmCacheFormats since = VllmCacheFormats::kPacked;
};

/// Nothing for names that are none of them.
const VllmCacheFormat* find_vllm_cache_format(std::string_view name);

/// Of one token's key and value of one head. Shapes: key [key_width], value [value_width]; 0: none is kept.
Bytes vllm_head_bytes(const VllmCacheFormat& format, std::int64_t key_width, std::int64_t value_width);

}  // namespace plimsoll::memory
