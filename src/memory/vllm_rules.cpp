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

struct Change {
  int major, minor, patch;
  void (*apply)(VllmRules&);
};

// What each release changed, oldest first; the fields' own values are those of 0.6.
constexpr Change kChanges[] = {
    {0, 6, 0, [](VllmRules&) {}},
    {0, 7, 2, [](VllmRules& r) { r.pads_latent = true; }},
    {0, 8, 0,
     [](VllmRules& r) {
       r.batches = B::kNamed;
       r.pads_latent = false;
     }},
    {0, 8, 4, [](VllmRules& r) { r.batches = B::kMemory; }},
    {0, 9, 0, [](VllmRules& r) { r.batches = B::kNotA100; }},
    {0, 9, 1,
     [](VllmRules& r) {
       r.grouping = G::kLeast;
       r.tokens = T::kBlocksOfGroup;
       r.concurrency = C::kBytes;
       r.checks_free_memory = true;
       r.counts_others = false;
     }},
    {0, 11, 0, [](VllmRules& r) { r.tokens = T::kLeastBlock; }},
    {0, 12, 0, [](VllmRules& r) { r.grouping = G::kMost125; }},
    {0, 14, 0,
     [](VllmRules& r) {
       r.rounds_budget_up = true;
       r.names_device = true;
       r.reads_modelopt_cache = true;
     }},
    {0, 16, 0, [](VllmRules& r) { r.reads_compressed_cache = true; }},
    {0, 18, 0, [](VllmRules& r) { r.grouping = G::kMost150; }},
    {0, 20, 0,
     [](VllmRules& r) {
       r.memory_utilization = 0.92;
       r.budgets_graphs = true;
     }},
    {0, 21, 0,
     [](VllmRules& r) {
       r.tokens = T::kRequests;
       r.override_is_pool = true;
     }},
    {0, 22, 0, [](VllmRules& r) { r.says_models = false; }},
    {0, 26, 0,
     [](VllmRules& r) {
       r.counts_batches_in_flight = true;
       r.caches_prefixes_of_states = true;
     }},
    {0, 27, 0, [](VllmRules& r) { r.concurrency = C::kBlocks; }},
    {0, 29, 0, [](VllmRules& r) { r.reserves_null_block = true; }},
    {0, 30, 0, [](VllmRules& r) { r.batches = B::kLarger; }},
    {0, 33, 0, [](VllmRules& r) { r.batches = B::kNotUnified; }},
};

constexpr auto kRules = [] {
  std::array<VllmRules, std::size(kChanges)> rows{};
  VllmRules rules;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    kChanges[i].apply(rules);
    rules.major = kChanges[i].major, rules.minor = kChanges[i].minor, rules.patch = kChanges[i].patch;
    rows[i] = rules;
  }
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

}  // namespace plimsoll::memory
