// SPDX-License-Identifier: Apache-2.0
// How many tokens has a block of each layer, and how many bytes its page? Beside states, blocks are made long
// enough for a state; pages of layers that share a pool are made equal. Inside the memory room. Pure; any
// thread may call. Source: docs/formulas/vllm_kv_cache.md, sections 3 and 4.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "memory/vllm_groups.h"

namespace plimsoll::memory {

struct VllmPages {
  std::vector<VllmPaged> layers;
  std::optional<std::int64_t> state_block_size;  // that states made the attention's block
};

/// Keys of an index, which lie beside their attention's.
bool is_index(VllmKind kind);

/// Errors: kMalformed for sizes that do not fit 63 bits.
Result<VllmPages> page_layers(const std::vector<VllmLayer>& layers, const VllmKvSettings& settings,
                              const VllmRules& rules);

/// Smaller pages that divide the largest take more tokens, others are filled up, as far as the release does.
/// Errors: kUnsupported where it does not, or layers with latent vectors stand in the way.
Status make_pages_equal(std::vector<VllmPaged>& layers, const VllmRules& rules);

}  // namespace plimsoll::memory
