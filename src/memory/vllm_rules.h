// SPDX-License-Identifier: Apache-2.0
// By which rules does a release of vLLM divide a GPU's memory?
// One struct filled from one table by release; formulas read its fields and compare no versions. Constants;
// any thread may call. Source: docs/formulas/vllm_kv_cache.md, section 7, and vllm_budget.md.
#pragma once

#include <span>
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

/// How many bytes the longest request is said to need.
enum class VllmNeed {
  kLayers,      // the blocks of each layer by itself, padding of groups left out
  kFirstGroup,  // as many blocks of the pool as the first group needs
  kGroups,      // the blocks of every group
};

/// How the refusal reads.
enum class VllmSentence {
  kFixed,    // "models's", GiB with two decimals
  kDocs,     // the same, and where more can be read
  kRounded,  // GiB as Python rounds them
  kModel,    // "model's", with a note on the CPU backend
};

/// What is kept of states for prefixes where their caching is on.
enum class VllmPrefixStates {
  kNone,        // nothing: it is turned off
  kAll,         // all states of Mamba; with others it is turned off
  kAllOrAlign,  // all states of Mamba; of others the last ones
  kAlign,       // the last ones, those of Mamba too unless a flag says otherwise
};

/// Which states of a request have one more for each draft token.
enum class VllmDraftStates { kNone, kLast, kEvery };

/// In which type the recurrent states of Mamba 2 are where no flag says it.
enum class VllmStateType {
  kActivations,  // as the activations, whatever the config says
  kHalf,         // the config's, else in 16 bit
  kDeclared,     // the config's, else what the architecture has
};

/// Which GPUs are given large batches where no flag says how large.
enum class VllmBatches {
  kLength,      // none: a batch holds the longest request, in chunks where that is long
  kNamed,       // H100 and H200, by name; all GPUs many sequences
  kMemory,      // those of 70 GiB and more
  kNotA100,     // the same without A100
  kLarger,      // beside these, larger ones from 160 GiB on
  kNotUnified,  // the same without GB10
};

/// How pages of several sizes share a block, where windows of latent vectors stand beside compressed ones.
enum class VllmPacking {
  kNone,     // such models do not run
  kTuples,   // as many sets of all sizes as the largest group has layers of one size
  kBuckets,  // as many pages of each size as a group has of it; a request is checked in sets
  kGroups,   // the widest group's own pages; a request is checked in sets
  kPacked,   // the widest group's pages throughout
};

/// Which packed formats of keys and values a release knows; each line those before it too.
enum class VllmCacheFormats { kNone, kPacked, kPackedInt4 };

struct VllmRules {
  int major = 0, minor = 0, patch = 0;  // the first release with these rules
  double memory_utilization = 0.90;     // --gpu-memory-utilization where no flag says otherwise
  VllmGrouping grouping = VllmGrouping::kNone;
  VllmTokens tokens = VllmTokens::kBlocks;
  VllmConcurrency concurrency = VllmConcurrency::kTokens;
  VllmBatches batches = VllmBatches::kLength;
  VllmPacking packing = VllmPacking::kNone;
  VllmCacheFormats cache_formats = VllmCacheFormats::kNone;
  bool counts_batches_in_flight = false;   // windows keep the tokens of every batch under way, not of one
  bool reserves_null_block = false;        // the fit check leaves out the block that is never handed out
  bool caches_prefixes_of_states = false;  // prefix caching is on by default where layers keep states
  VllmNeed need = VllmNeed::kLayers;
  VllmSentence sentence = VllmSentence::kFixed;
  VllmPrefixStates prefix_states = VllmPrefixStates::kNone;
  VllmDraftStates draft_states = VllmDraftStates::kNone;
  VllmStateType state_type = VllmStateType::kActivations;
  int latent_step = 16;                  // beside states a block of latent vectors is a multiple of it
  bool steps_by_block_size = false;      // and any block one of --block-size
  bool lengthens_blocks = false;         // pages that divide the largest take more tokens; else a refusal
  bool pads_attention_pages = false;     // other pages of attention are filled up; else a refusal
  bool pads_state_pages = false;         // pages of states are
  bool has_fixed_window_blocks = false;  // blocks of layers with windows have the kernel's tokens
  bool splits_differing_pages = false;   // a stage counts its own of layers whose pages differ, not all
  bool keeps_checkpoints = false;        // prefill leaves a checkpoint of a state beside cached prefixes
  bool aligns_rows = false;              // a block of sparse latent vectors is a whole number of rows
  bool keeps_tables_in_host = false;     // n-gram tables lie in the host's memory
  bool overlaps_mixtures = true;         // stages of models with experts or states run a batch more
  bool checks_free_memory = false;       // the share asked for has to be free at the start
  bool names_device = false;             // that refusal names the device
  bool counts_others = true;             // what others took before the start is taken off the budget
  bool rounds_budget_up = false;         // the share in bytes; else down
  bool budgets_graphs = false;           // an estimate for CUDA graphs is taken off the budget
  bool pads_latent = false;              // latent vectors are filled up to whole 256 bytes
  bool reads_modelopt_cache = false;     // `auto` takes the cache's type that modelopt declares
  bool reads_compressed_cache = false;   // the same of compressed-tensors
  bool fits_length = false;              // --max-model-len auto
  bool override_is_pool = false;         // blocks given by a flag are what a request is held against
};

/// The rules of `version` ("0.33.0"): of the newest release known that is no newer, the oldest known where
/// there is none; the newest for an empty or unreadable one.
const VllmRules& vllm_rules(std::string_view version);

/// What a release changed of them.
struct VllmChange {
  int major = 0, minor = 0, patch = 0;
  std::string_view what;
};

/// All of them, oldest first.
std::span<const VllmChange> vllm_changes();

}  // namespace plimsoll::memory
