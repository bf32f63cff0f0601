// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_groups.h"

#include <algorithm>
#include <string>

#include "base/division.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kLatentTokens =
    128;  // beside states, blocks of latent vectors are a whole number of these

using Paged = VllmPaged;
using Group = VllmPagedGroup;

bool is_index(VllmKind kind) {
  return kind == VllmKind::kIndexer || kind == VllmKind::kCompressedKeys;
}

bool keeps_all_tokens(VllmKind kind) {
  return kind == VllmKind::kFull || kind == VllmKind::kLatent || is_index(kind);
}

class Grouper {
 public:
  Grouper(const VllmKvSettings& settings, const VllmRules& rules) : settings_(settings), rules_(rules) {}

  Result<VllmGroups> group(const std::vector<VllmLayer>& layers) {
    PLIMSOLL_TRY_VOID(page(layers));
    if (has(VllmKind::kLatentWindow)) {
      PLIMSOLL_TRY(result_.groups, group_compressed(std::move(layers_), settings_, rules_));
      result_.is_compressed = true;
      return std::move(result_);
    }
    drop_windows();
    PLIMSOLL_TRY_VOID(group());
    return std::move(result_);
  }

 private:
  Status page(const std::vector<VllmLayer>& layers) {
    std::int64_t state = 0, token = 0;
    bool is_latent = false;
    for (const VllmLayer& layer : layers) {
      state = std::max(state, layer.state_bytes.value);
      if (is_index(layer.kind)) continue;
      token = std::max(token, layer.token_bytes.value);
      is_latent = is_latent || layer.kind == VllmKind::kLatent;
    }
    std::int64_t block = settings_.block_size, padded = 0;
    if (state > 0 && token > 0) {
      const std::int64_t step =
          std::max({is_latent ? kLatentTokens : 1, settings_.kernel_tokens, settings_.block_size});
      const auto stride = checked_product(step, token);
      if (!stride) return vllm_block_too_large();
      block = std::max(block, step * divided_up(state, *stride));
      const auto page = checked_product(block, token);
      if (!page) return vllm_block_too_large();
      padded = *page;
      result_.state_block_size = block;
    }
    for (const VllmLayer& layer : layers) {
      if (layer.kind == VllmKind::kState) {
        const std::int64_t length =
            settings_.state_mode == VllmStateMode::kNone ? settings_.max_model_len : block;
        layers_.push_back({layer, length, std::max(padded, layer.state_bytes.value)});
        continue;
      }
      const std::int64_t length = layer.own_block > 0 ? layer.own_block : block;
      const auto page = checked_product(length / layer.entry_tokens, layer.token_bytes.value);
      if (!page) return vllm_block_too_large();
      layers_.push_back({layer, length, divided_up(*page, layer.page_step) * layer.page_step});
    }
    return {};
  }

  bool has(VllmKind kind) const {
    return std::any_of(layers_.begin(), layers_.end(), [&](const Paged& p) { return p.layer.kind == kind; });
  }

  // Without the hybrid manager there is one kind of table: layers with a reach keep all.
  void drop_windows() {
    if (settings_.is_hybrid_manager_on && rules_.grouping != VllmGrouping::kNone) return;
    if (!has(VllmKind::kFull)) return;
    for (Paged& paged : layers_)
      if (paged.layer.kind == VllmKind::kSlidingWindow || paged.layer.kind == VllmKind::kChunked) {
        paged.layer.kind = VllmKind::kFull;
        paged.layer.reach = 0;
      }
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
    // Index keys lie in one block with their attention: pages of a block may differ then.
    const bool is_packed = has(VllmKind::kCompressedKeys);
    if (!is_packed) PLIMSOLL_TRY_VOID(make_pages_equal());
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

  // Smaller pages of attention that divide the largest grow their block; others are padded.
  Status make_pages_equal() {
    std::int64_t largest = 0;
    for (const Paged& paged : layers_) largest = std::max(largest, paged.page);
    for (Paged& paged : layers_) {
      if (paged.page == largest) continue;
      if (paged.page == 0) continue;
      if (paged.layer.kind != VllmKind::kState && largest % paged.page == 0) {
        paged.block_size *= largest / paged.page;
      } else if (paged.layer.kind == VllmKind::kLatent || paged.layer.kind == VllmKind::kIndexer) {
        return fail(ErrorCode::kUnsupported,
                    "pages of " + std::to_string(paged.page) + " and " + std::to_string(largest) +
                        " bytes cannot be made equal for layers with latent vectors",
                    "", "use --engine any for the formula");
      }
      paged.page = largest;
    }
    return {};
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
