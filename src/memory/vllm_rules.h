// SPDX-License-Identifier: Apache-2.0
// By which rules does a release of vLLM divide the memory for keys and values?
// One struct filled from one table by release; formulas read its fields and compare no versions. Constants;
// any thread may call. Source: docs/formulas/vllm_kv_cache.md, section 7.
#pragma once

#include <string_view>

namespace plimsoll::memory {

/// How long the groups of layers are made that share a pool of blocks.
enum class VllmGrouping {
  kNone,     // one pool of equal layers; there are no groups
  kLeast,    // as many layers as the rarest kind has
  kMost125,  // as the most frequent kind, where that has less than 1.25 times the rarest
  kMost150,  // the same with 1.5
};

/// What the line "KV cache size: N tokens" counts.
enum class VllmTokens {
  kBlocks,         // blocks x block size
  kBlocksOfGroup,  // blocks / groups x block size
  kLeastBlock,     // blocks / groups x the smallest block size
  kRequests,       // requests of the longest length x that length
};

/// What "Maximum concurrency" divides.
enum class VllmConcurrency {
  kTokens,  // tokens of the pool by the longest length
  kBytes,   // blocks by the bytes of a request in blocks
  kBlocks,  // blocks by those that a request needs
};

struct VllmRules {
  int major = 0, minor = 0, patch = 0;  // the first release with these rules
  double memory_utilization = 0.92;     // --gpu-memory-utilization where no flag says otherwise
  VllmGrouping grouping = VllmGrouping::kMost150;
  VllmTokens tokens = VllmTokens::kRequests;
  VllmConcurrency concurrency = VllmConcurrency::kBlocks;
  bool counts_batches_in_flight = true;   // windows keep the tokens of every batch under way, not of one
  bool reserves_null_block = true;        // the fit check leaves out the block that is never handed out
  bool caches_prefixes_of_states = true;  // prefix caching is on by default where layers keep states
  bool says_models = false;               // the refusal reads "models's"
};

/// The rules of `version` ("0.33.0"): of the newest release known that is no newer, the oldest known where
/// there is none; the newest for an empty or unreadable one.
const VllmRules& vllm_rules(std::string_view version);

}  // namespace plimsoll::memory
