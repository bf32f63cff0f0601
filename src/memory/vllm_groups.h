// SPDX-License-Identifier: Apache-2.0
// Inside the memory room: which layers share a table of vLLM's blocks, and how large is a page of each? Pure.
// Source: docs/formulas/vllm_kv_cache.md, sections 3, 4 and 9.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "memory/vllm_kv.h"

namespace plimsoll::memory {

/// A layer with the block that it ends up with.
struct VllmPaged {
  VllmLayer layer;
  std::int64_t block_size = 0;  // tokens
  std::int64_t page = 0;        // bytes of one block
  bool operator==(const VllmPaged& other) const;
};

using VllmPagedGroup = std::vector<VllmPaged>;  // never empty

struct VllmGroups {
  std::vector<VllmPagedGroup> groups;
  std::vector<VllmPaged> layers;                 // each by itself, with the window that it has
  std::optional<std::int64_t> state_block_size;  // that states made the attention's block
  bool is_compressed = false;                    // pages of a block differ; see compressed_block()
};

/// Errors: kMalformed for sizes that do not fit 63 bits; kUnsupported where pages of the kinds cannot be made
/// equal, and for compressed vectors before the release that knows them.
Result<VllmGroups> group_vllm_layers(const std::vector<VllmLayer>& layers, const VllmKvSettings& settings,
                                     const VllmRules& rules);

/// The groups of layers with compressed latent vectors and windows of them. `layers`: [layers], paged.
Result<std::vector<VllmPagedGroup>> group_compressed(std::vector<VllmPaged> layers,
                                                     const VllmKvSettings& settings, const VllmRules& rules);

/// Bytes of a block of such groups, and the bytes that the fit check counts for each block of a request; they
/// differ in some releases. `groups`: those of one pipeline stage, empty ones left out.
struct CompressedBlock {
  Bytes pool, request;
};
/// Errors: kMalformed for sizes that do not fit 63 bits.
Result<CompressedBlock> compressed_block(const std::vector<VllmPagedGroup>& groups, VllmPacking packing);

/// All pages of a group.
Bytes pages_of(const VllmPagedGroup& group);

tl::unexpected<Error> vllm_block_too_large();

}  // namespace plimsoll::memory
