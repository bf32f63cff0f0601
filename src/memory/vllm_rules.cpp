// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_rules.h"

#include <array>
#include <vector>

#include "facts/engines.h"

namespace plimsoll::memory {
namespace {

using G = VllmGrouping;
using T = VllmTokens;
using C = VllmConcurrency;
using B = VllmBatches;
using P = VllmPacking;
using F = VllmCacheFormats;
using S = VllmPrefixStates;

struct Step {
  VllmChange change;
  void (*apply)(VllmRules&);
};

// What each release changed, oldest first; the fields' own values are those of 0.6.
constexpr Step kSteps[] = {
    {{0, 6, 0, "one pool of equal layers; no groups"}, [](VllmRules&) {}},
    {{0, 7, 2, "latent vectors of the cache fill a multiple of 256 bytes"},
     [](VllmRules& r) { r.pads_latent = true; }},
    {{0, 8, 0,
      "batches of 8,192 tokens on H100 and H200; 1,024 sequences on all GPUs; latent vectors are no longer "
      "padded"},
     [](VllmRules& r) {
       r.batches = B::kNamed;
       r.pads_latent = false;
     }},
    {{0, 8, 4, "batches of 8,192 tokens and 1,024 sequences on GPUs of 70 GiB and more, 2,048 and 256 below"},
     [](VllmRules& r) { r.batches = B::kMemory; }},
    {{0, 9, 0, "A100 takes the batches of small GPUs"}, [](VllmRules& r) { r.batches = B::kNotA100; }},
    {{0, 9, 1,
      "layers in groups that share a pool; the memory asked for has to be free at the start, and what others "
      "hold is no longer taken off"},
     [](VllmRules& r) {
       r.grouping = G::kLeast;
       r.tokens = T::kBlocksOfGroup;
       r.concurrency = C::kBytes;
       r.checks_free_memory = true;
       r.counts_others = false;
     }},
    {{0, 11, 0, "tokens of several groups are logged by the smallest block"},
     [](VllmRules& r) { r.tokens = T::kLeastBlock; }},
    {{0, 11, 1,
      "latent vectors beside states in blocks of 64 tokens; prefixes of Mamba's states can be cached, all of "
      "them"},
     [](VllmRules& r) {
       r.latent_step = 64;
       r.prefix_states = S::kAll;
     }},
    {{0, 12, 0,
      "groups as long as the most frequent kind, where that has less than 1.25 times the rarest; pages that "
      "divide the largest take more tokens"},
     [](VllmRules& r) {
       r.grouping = G::kMost125;
       r.lengthens_blocks = true;
     }},
    {{0, 13, 0,
      "states of Mamba 2 in the type that Nemotron's config names; the refusal names a page to read"},
     [](VllmRules& r) {
       r.state_type = VllmStateType::kHalf;
       r.sentence = VllmSentence::kDocs;
     }},
    {{0, 14, 0,
      "the budget is rounded up to a whole byte; auto takes the cache type that a modelopt checkpoint names; "
      "the longest request is held against the blocks of the first group; --max-model-len auto"},
     [](VllmRules& r) {
       r.fits_length = true;
       r.need = VllmNeed::kFirstGroup;
       r.sentence = VllmSentence::kRounded;
       r.rounds_budget_up = true;
       r.names_device = true;
       r.reads_modelopt_cache = true;
     }},
    {{0, 16, 0,
      "auto takes the cache type that a compressed-tensors checkpoint names; prefixes of all states can be "
      "cached"},
     [](VllmRules& r) {
       r.reads_compressed_cache = true;
       r.prefix_states = S::kAllOrAlign;
       r.draft_states = VllmDraftStates::kLast;
     }},
    {{0, 17, 0, "the longest request is held against the blocks of all groups, on each pipeline stage"},
     [](VllmRules& r) {
       r.need = VllmNeed::kGroups;
       r.splits_differing_pages = true;
     }},
    {{0, 18, 0, "groups as long as the most frequent kind, where that has less than 1.5 times the rarest"},
     [](VllmRules& r) { r.grouping = G::kMost150; }},
    {{0, 20, 0,
      "--gpu-memory-utilization is 0.92 by default, 0.90 before; an estimate for CUDA graphs is taken off "
      "the cache; blocks beside states are whole multiples of --block-size; Nemotron's states in 32 bit"},
     [](VllmRules& r) {
       r.latent_step = 16;
       r.steps_by_block_size = true;
       r.state_type = VllmStateType::kDeclared;
       r.memory_utilization = 0.92;
       r.budgets_graphs = true;
       r.packing = P::kTuples;
       r.cache_formats = F::kPacked;
     }},
    {{0, 21, 0,
      "the tokens that are logged are the requests of the longest length times that length; "
      "--num-gpu-blocks-override is the pool itself"},
     [](VllmRules& r) {
       r.tokens = T::kRequests;
       r.override_is_pool = true;
     }},
    {{0, 22, 0, "the refusal reads \"model's\""},
     [](VllmRules& r) {
       r.sentence = VllmSentence::kModel;
       r.draft_states = VllmDraftStates::kEvery;
     }},
    {{0, 24, 0,
      "pages of attention that do not divide the largest are filled up; compressed latent vectors: a block "
      "holds as many pages of each size as a group needs"},
     [](VllmRules& r) {
       r.pads_attention_pages = true;
       r.packing = P::kBuckets;
     }},
    {{0, 25, 0,
      "blocks of layers with windows have 16 tokens, whatever --block-size says; keys and values of 4 bit "
      "with a scale for each token and head"},
     [](VllmRules& r) {
       r.has_fixed_window_blocks = true;
       r.cache_formats = F::kPackedInt4;
     }},
    {{0, 26, 0,
      "windows keep the tokens of every batch under way; prefixes of models with states are cached by "
      "default"},
     [](VllmRules& r) {
       r.counts_batches_in_flight = true;
       r.overlaps_mixtures = false;
       r.pads_state_pages = true;
       r.caches_prefixes_of_states = true;
     }},
    {{0, 27, 0,
      "requests are counted by the blocks of each group; latent vectors beside states in blocks of 128 "
      "tokens; compressed latent vectors: a block is the widest group's pages"},
     [](VllmRules& r) {
       r.concurrency = C::kBlocks;
       r.latent_step = 128;
       r.packing = P::kGroups;
     }},
    {{0, 28, 0, "of states only the last ones are kept for prefixes"},
     [](VllmRules& r) { r.prefix_states = S::kAlign; }},
    {{0, 29, 0,
      "one block is kept back in the check whether a request fits; prefill leaves checkpoints of states; "
      "stages of mixtures of experts run a batch more"},
     [](VllmRules& r) {
       r.reserves_null_block = true;
       r.packing = P::kPacked;
       r.keeps_checkpoints = true;
       r.overlaps_mixtures = true;
     }},
    {{0, 30, 0, "batches of 16,384 tokens on GPUs of 160 GiB and more"},
     [](VllmRules& r) { r.batches = B::kLarger; }},
    {{0, 31, 0, "a block of sparse latent vectors is a whole number of rows"},
     [](VllmRules& r) { r.aligns_rows = true; }},
    {{0, 32, 0, "n-gram tables lie in the host's memory by default"},
     [](VllmRules& r) { r.keeps_tables_in_host = true; }},
    {{0, 33, 0, "GB10 takes the batches of small GPUs"}, [](VllmRules& r) { r.batches = B::kNotUnified; }},
};

constexpr auto kRules = [] {
  std::array<VllmRules, std::size(kSteps)> rows{};
  VllmRules rules;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const VllmChange& change = kSteps[i].change;
    kSteps[i].apply(rules);
    rules.major = change.major, rules.minor = change.minor, rules.patch = change.patch;
    rows[i] = rules;
  }
  return rows;
}();

constexpr auto kChanges = [] {
  std::array<VllmChange, std::size(kSteps)> rows{};
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = kSteps[i].change;
  return rows;
}();

}  // namespace

const VllmRules& vllm_rules(std::string_view version) {
  const auto asked = facts::release_numbers(version);
  if (asked.empty()) return kRules.back();
  for (auto rules = kRules.rbegin(); rules != kRules.rend(); ++rules)
    if (std::vector{rules->major, rules->minor, rules->patch} <= asked) return *rules;
  return kRules.front();
}

std::span<const VllmChange> vllm_changes() {
  return kChanges;
}

}  // namespace plimsoll::memory
