// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_groups.h"

#include <algorithm>
#include <string>

#include "memory/vllm_pages.h"

namespace plimsoll::memory {
namespace {

using Paged = VllmPaged;
using Group = VllmPagedGroup;

bool keeps_all_tokens(VllmKind kind) {
  return kind == VllmKind::kFull || kind == VllmKind::kLatent || is_index(kind);
}

class Grouper {
 public:
  Grouper(const VllmKvSettings& settings, const VllmRules& rules) : settings_(settings), rules_(rules) {}

  Result<VllmGroups> group(const std::vector<VllmLayer>& layers) {
    PLIMSOLL_TRY(VllmPages pages, page_layers(with_dropped_windows(layers), settings_, rules_));
    result_.state_block_size = pages.state_block_size;
    layers_ = result_.layers = std::move(pages.layers);
    if (rules_.grouping != VllmGrouping::kNone) {
      PLIMSOLL_TRY(pages, page_layers(layers, settings_, rules_));
      result_.layers = std::move(pages.layers);
    }
    if (has(VllmKind::kLatentWindow)) {
      PLIMSOLL_TRY(result_.groups, group_compressed(std::move(layers_), settings_, rules_));
      result_.is_compressed = true;
      return std::move(result_);
    }
    PLIMSOLL_TRY_VOID(group());
    return std::move(result_);
  }

 private:
  bool has(VllmKind kind) const {
    return std::any_of(layers_.begin(), layers_.end(), [&](const Paged& p) { return p.layer.kind == kind; });
  }

  // Without the hybrid manager there is one kind of table: layers with a reach keep all.
  std::vector<VllmLayer> with_dropped_windows(std::vector<VllmLayer> layers) const {
    const bool has_full = std::any_of(layers.begin(), layers.end(),
                                      [](const VllmLayer& layer) { return layer.kind == VllmKind::kFull; });
    if (!has_full || (settings_.is_hybrid_manager_on && rules_.grouping != VllmGrouping::kNone))
      return layers;
    for (VllmLayer& layer : layers)
      if (layer.kind == VllmKind::kSlidingWindow || layer.kind == VllmKind::kChunked) {
        layer.kind = VllmKind::kFull;
        layer.reach = 0;
      }
    return layers;
  }

  /// One kind of rule for all, whatever the sizes of pages: one group.
  bool is_uniform() const {
    const auto& first = layers_.front();
    return std::all_of(layers_.begin(), layers_.end(), [&](const Paged& paged) {
      const VllmKind kind = paged.layer.kind;
      if (kind == first.layer.kind)
        return paged.layer.reach == first.layer.reach && paged.block_size == first.block_size;
      return keeps_all_tokens(kind) && keeps_all_tokens(first.layer.kind);
    });
  }

  Status group() {
    if (layers_.empty()) return {};
    if (is_uniform()) {
      result_.groups.push_back(layers_);
      return {};
    }
    if (!settings_.is_hybrid_manager_on && rules_.grouping != VllmGrouping::kNone)
      return fail(ErrorCode::kUnsupported,
                  "without the hybrid manager all layers have to be of one kind, and vLLM does not start",
                  "--disable-hybrid-kv-cache-manager", "leave it out");
    // Index keys lie in one block with their attention: pages of a block may differ then.
    const bool is_packed = has(VllmKind::kCompressedKeys);
    if (!is_packed) PLIMSOLL_TRY_VOID(make_pages_equal(layers_, rules_));
    std::vector<Group> buckets;
    for (const Paged& paged : layers_) {
      const auto bucket = std::find_if(buckets.begin(), buckets.end(), [&](const Group& other) {
        return other.front() == paged || (is_packed && keeps_all_tokens(other.front().layer.kind) &&
                                          keeps_all_tokens(paged.layer.kind));
      });
      if (bucket == buckets.end())
        buckets.push_back({paged});
      else
        bucket->push_back(paged);
    }
    const std::size_t size = is_packed ? num_attending() : group_size(buckets);
    for (const Group& bucket : buckets) {
      const bool is_whole = is_packed && keeps_all_tokens(bucket.front().layer.kind);
      const std::size_t count = is_whole ? 1 : (bucket.size() + size - 1) / size;
      const std::size_t first = result_.groups.size();
      result_.groups.resize(first + count);
      for (std::size_t i = 0; i < bucket.size(); ++i) result_.groups[first + i % count].push_back(bucket[i]);
    }
    return {};
  }

  std::size_t num_attending() const {
    return static_cast<std::size_t>(std::count_if(layers_.begin(), layers_.end(), [](const Paged& p) {
      return keeps_all_tokens(p.layer.kind) && !is_index(p.layer.kind);
    }));
  }

  std::size_t group_size(const std::vector<Group>& buckets) const {
    std::size_t least = SIZE_MAX, most = 0;
    for (const Group& bucket : buckets) {
      least = std::min(least, bucket.size());
      most = std::max(most, bucket.size());
    }
    const bool takes_most = (rules_.grouping == VllmGrouping::kMost150 && most * 2 < least * 3) ||
                            (rules_.grouping == VllmGrouping::kMost125 && most * 4 < least * 5);
    return takes_most ? most : least;
  }

  const VllmKvSettings& settings_;
  const VllmRules& rules_;
  std::vector<Paged> layers_;
  VllmGroups result_;
};

}  // namespace

bool VllmPaged::operator==(const VllmPaged& other) const {
  return layer.kind == other.layer.kind && layer.token_bytes == other.layer.token_bytes &&
         layer.state_bytes == other.layer.state_bytes && layer.reach == other.layer.reach &&
         layer.aligns_blocks == other.layer.aligns_blocks &&
         layer.exports_checkpoint == other.layer.exports_checkpoint && block_size == other.block_size &&
         page == other.page;
}

tl::unexpected<Error> vllm_block_too_large() {
  return fail(ErrorCode::kMalformed, "a block of the cache does not fit 63 bits", "config.json",
              "check the sizes in the config");
}

Result<VllmGroups> group_vllm_layers(const std::vector<VllmLayer>& layers, const VllmKvSettings& settings,
                                     const VllmRules& rules) {
  return Grouper(settings, rules).group(layers);
}

}  // namespace plimsoll::memory
