// SPDX-License-Identifier: Apache-2.0
// Groups where each layer keeps a window of latent vectors and most keep compressed ones beside it: pages of
// several sizes share one block. Source: docs/formulas/vllm_kv_cache.md, section 9.
#include <algorithm>
#include <map>
#include <string>

#include "base/division.h"
#include "memory/vllm_groups.h"

namespace plimsoll::memory {
namespace {

using Group = VllmPagedGroup;
using Places = std::vector<std::size_t>;            // of layers in their bucket
using PageLayers = std::map<std::int64_t, Places>;  // page -> the layers that have it

bool is_whole(const VllmPaged& paged) {
  return paged.layer.kind == VllmKind::kLatent || paged.layer.kind == VllmKind::kIndexer;
}

PageLayers by_page(const Group& group) {
  PageLayers layers;
  for (std::size_t i = 0; i < group.size(); ++i) layers[group[i].page].push_back(i);
  return layers;
}

/// Layers of the page that most layers have.
std::int64_t num_repeats(const Group& group) {
  std::size_t most = 0;
  for (const auto& [page, places] : by_page(group)) most = std::max(most, places.size());
  return static_cast<std::int64_t>(most);
}

/// The same number of layers for each page.
bool is_balanced(const Group& group) {
  const PageLayers layers = by_page(group);
  return std::all_of(layers.begin(), layers.end(),
                     [&](const auto& entry) { return entry.second.size() == layers.begin()->second.size(); });
}

/// The size from `least` on in whose multiples `counts` leave the fewest places empty; the largest of equals.
std::int64_t repeats_of_group(const std::vector<std::int64_t>& counts, std::int64_t least) {
  std::int64_t best = std::max<std::int64_t>(least, 1), fewest = INT64_MAX;
  for (std::int64_t size = best; size <= *std::max_element(counts.begin(), counts.end()); ++size) {
    std::int64_t empty = 0;
    for (const std::int64_t count : counts) empty += divided_up(count, size) * size - count;
    if (empty <= fewest) fewest = empty, best = size;
  }
  return best;
}

/// Layers that keep all tokens in one bucket; those with a window by its length and their block.
std::vector<Group> buckets_of(const std::vector<VllmPaged>& layers) {
  std::vector<Group> buckets;
  for (const VllmPaged& paged : layers) {
    const auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const Group& other) {
      const VllmPaged& first = other.front();
      return is_whole(first) == is_whole(paged) && first.block_size == paged.block_size &&
             first.layer.reach == paged.layer.reach;
    });
    if (bucket == buckets.end())
      buckets.push_back({paged});
    else
      bucket->push_back(paged);
  }
  return buckets;
}

/// Windows' pages grow to the next larger page of those that keep all.
bool pad_pages(Group& bucket, const Group& whole) {
  const PageLayers pages = by_page(whole);
  for (VllmPaged& paged : bucket) {
    const auto larger = pages.lower_bound(paged.page);
    if (larger == pages.end()) return false;
    paged.page = larger->first;
  }
  return true;
}

/// One layer of each page to each group in turn.
void split(const Group& bucket, std::int64_t count, std::vector<Group>& groups) {
  const std::size_t first = groups.size(), num_groups = static_cast<std::size_t>(count);
  groups.resize(first + num_groups);
  for (const auto& [page, places] : by_page(bucket))
    for (std::size_t i = 0; i < places.size(); ++i)
      groups[first + i % num_groups].push_back(bucket[places[i]]);
}

auto unsupported(const std::string& what) {
  return fail(ErrorCode::kUnsupported, "how vLLM groups " + what + " is not known here", "config.json",
              "use --engine any for the formula");
}

}  // namespace

Result<std::vector<Group>> group_compressed(std::vector<VllmPaged> layers, const VllmKvSettings& settings,
                                            const VllmRules& rules) {
  if (rules.packing == VllmPacking::kNone)
    return fail(ErrorCode::kUnsupported, "this release of vLLM does not know compressed latent vectors",
                "--engine", "take vLLM 0.20 or later");
  if (!settings.is_hybrid_manager_on) return unsupported("compressed latent vectors without hybrid tables");
  if (settings.decode_context_parallel > 1)
    return unsupported("compressed latent vectors over context ranks");
  std::vector<Group> buckets = buckets_of(layers);
  const auto whole = std::find_if(buckets.begin(), buckets.end(),
                                  [](const Group& bucket) { return is_whole(bucket.front()); });
  if (whole == buckets.end()) return unsupported("windows of latent vectors alone");
  if (rules.packing != VllmPacking::kPacked) std::rotate(buckets.begin(), whole, whole + 1);
  const Group first = buckets.front();
  const bool pads = rules.packing == VllmPacking::kTuples || rules.packing == VllmPacking::kBuckets;
  std::vector<std::int64_t> counts;
  std::int64_t least = 0;
  for (Group& bucket : buckets) {
    const bool is_window = !is_whole(bucket.front());
    if (is_window && pads && !pad_pages(bucket, first)) return unsupported("windows with pages of their own");
    if (is_window && !is_balanced(bucket)) return unsupported("windows of unequal layers");
    const bool counts_in = rules.packing != VllmPacking::kPacked || is_balanced(bucket);
    if (!counts_in) continue;
    counts.push_back(num_repeats(bucket));
    if (rules.packing == VllmPacking::kPacked ? by_page(bucket).size() > 1 : !is_window)
      least = std::max(least, counts.back());
  }
  // Without a bucket of several pages the newest rule splits nothing.
  const std::int64_t size = least > 0 ? repeats_of_group(counts, least) : INT64_MAX;
  std::vector<Group> groups;
  for (const Group& bucket : buckets)
    split(bucket, is_whole(bucket.front()) ? 1 : divided_up(num_repeats(bucket), size), groups);
  return groups;
}

Bytes pages_of(const Group& group) {
  Bytes sum;
  for (const VllmPaged& paged : group) sum += Bytes(paged.page);
  return sum;
}

Result<CompressedBlock> compressed_block(const std::vector<Group>& groups, VllmPacking packing) {
  CompressedBlock block;
  std::map<std::int64_t, std::int64_t> slots;  // page -> the most that a group has of it
  std::int64_t tuples = 0;
  Bytes widest;
  for (const Group& group : groups) {
    widest = std::max(widest, pages_of(group));
    tuples = std::max(tuples, num_repeats(group));
    for (const auto& [page, places] : by_page(group))
      slots[page] = std::max(slots[page], static_cast<std::int64_t>(places.size()));
  }
  if (groups.empty()) return block;
  Bytes tuple, bucketed;
  for (const auto& [page, places] : by_page(groups.front())) tuple += Bytes(page);
  for (const auto& [page, count] : slots) bucketed += Bytes(page) * count;
  const auto tupled = checked_product(tuple.value, tuples);
  if (!tupled) return vllm_block_too_large();
  block.request = packing == VllmPacking::kPacked ? widest : Bytes(*tupled);
  block.pool = packing == VllmPacking::kTuples    ? block.request
               : packing == VllmPacking::kBuckets ? bucketed
                                                  : widest;
  return block;
}

}  // namespace plimsoll::memory
