// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_rules.h"

#include <array>
#include <charconv>
#include <tuple>

namespace plimsoll::memory {
namespace {

using G = VllmGrouping;
using T = VllmTokens;
using C = VllmConcurrency;

// Newest first. Columns: release, utilization, grouping, tokens, concurrency, batches in flight, null block,
// prefixes of states, "models's".
constexpr VllmRules kRules[] = {
    {0, 29, 0, 0.92, G::kMost150, T::kRequests, C::kBlocks, true, true, true, false},
    {0, 27, 0, 0.92, G::kMost150, T::kRequests, C::kBlocks, true, false, true, false},
    {0, 26, 0, 0.92, G::kMost150, T::kRequests, C::kBytes, true, false, true, false},
    {0, 22, 0, 0.92, G::kMost150, T::kRequests, C::kBytes, false, false, false, false},
    {0, 21, 0, 0.92, G::kMost150, T::kRequests, C::kBytes, false, false, false, true},
    {0, 20, 0, 0.92, G::kMost150, T::kLeastBlock, C::kBytes, false, false, false, true},
    {0, 18, 0, 0.90, G::kMost150, T::kLeastBlock, C::kBytes, false, false, false, true},
    {0, 12, 0, 0.90, G::kMost125, T::kLeastBlock, C::kBytes, false, false, false, true},
    {0, 11, 0, 0.90, G::kLeast, T::kLeastBlock, C::kBytes, false, false, false, true},
    {0, 9, 1, 0.90, G::kLeast, T::kBlocksOfGroup, C::kBytes, false, false, false, true},
    {0, 6, 0, 0.90, G::kNone, T::kBlocks, C::kTokens, false, false, false, true},
};

std::array<int, 3> numbers_of(std::string_view version) {
  std::array<int, 3> numbers{};
  for (int& number : numbers) {
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc()) break;
    version.remove_prefix(static_cast<std::size_t>(end - version.data()));
    if (version.empty() || version.front() != '.') break;
    version.remove_prefix(1);
  }
  return numbers;
}

}  // namespace

const VllmRules& vllm_rules(std::string_view version) {
  const auto asked = numbers_of(version);
  if (asked == std::array<int, 3>{}) return kRules[0];
  for (const VllmRules& rules : kRules)
    if (std::tie(rules.major, rules.minor, rules.patch) <= std::tie(asked[0], asked[1], asked[2]))
      return rules;
  return kRules[std::size(kRules) - 1];
}

}  // namespace plimsoll::memory
