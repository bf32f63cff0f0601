// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_kv.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kLatentTokens =
    128;  // beside states, blocks of latent vectors are a whole number of these

std::int64_t divided_up(std::int64_t amount, std::int64_t parts) {
  return amount / parts + (amount % parts != 0 ? 1 : 0);
}

/// A layer with the block that it ends up with.
struct Paged {
  VllmLayer layer;
  std::int64_t block_size = 0;
  std::int64_t page = 0;
  bool operator==(const Paged& other) const {
    return layer.kind == other.layer.kind && layer.token_bytes == other.layer.token_bytes &&
           layer.state_bytes == other.layer.state_bytes && layer.reach == other.layer.reach &&
           layer.aligns_blocks == other.layer.aligns_blocks &&
           layer.exports_checkpoint == other.layer.exports_checkpoint && block_size == other.block_size &&
           page == other.page;
  }
};

using Group = std::vector<Paged>;  // never empty

bool is_index(VllmKind kind) {
  return kind == VllmKind::kIndexer || kind == VllmKind::kCompressedKeys;
}

bool keeps_all_tokens(VllmKind kind) {
  return kind == VllmKind::kFull || kind == VllmKind::kLatent || is_index(kind);
}

class Planner {
 public:
  Planner(const VllmKvSettings& settings, const VllmRules& rules) : settings_(settings), rules_(rules) {}

  Result<VllmKvPlan> plan(const std::vector<VllmLayer>& layers, std::int64_t num_model_layers,
                          Bytes available) {
    PLIMSOLL_TRY_VOID(page(layers));
    drop_windows();
    PLIMSOLL_TRY_VOID(group());
    PLIMSOLL_TRY_VOID(size_blocks(num_model_layers));
    describe_groups();
    count(available);
    return std::move(plan_);
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
      if (!stride) return too_large();
      block = std::max(block, step * divided_up(state, *stride));
      const auto page = checked_product(block, token);
      if (!page) return too_large();
      padded = *page;
      plan_.state_block_size = block;
    }
    for (const VllmLayer& layer : layers) {
      if (layer.kind == VllmKind::kState) {
        const std::int64_t length =
            settings_.state_mode == VllmStateMode::kNone ? settings_.max_model_len : block;
        layers_.push_back({layer, length, std::max(padded, layer.state_bytes.value)});
        continue;
      }
      const auto page = checked_product(block, layer.token_bytes.value);
      if (!page) return too_large();
      layers_.push_back({layer, block, *page});
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
      groups_.push_back(layers_);
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
      const std::size_t first = groups_.size();
      groups_.resize(first + count);
      for (std::size_t i = 0; i < bucket.size(); ++i) groups_[first + i % count].push_back(bucket[i]);
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

  Status size_blocks(std::int64_t num_model_layers) {
    stages_ = pipeline_stages(num_model_layers, settings_.pipeline_parallel);
    plan_.bytes_per_block.assign(static_cast<std::size_t>(settings_.pipeline_parallel), Bytes(0));
    for (const Group& group : groups_) {
      std::vector<std::int64_t> sums(plan_.bytes_per_block.size(), 0);
      for (const Paged& paged : group) {
        auto& sum = sums[stage_of(paged)];
        const auto more = checked_sum(sum, paged.page);
        if (!more) return too_large();
        sum = *more;
      }
      for (std::size_t i = 0; i < sums.size(); ++i)
        plan_.bytes_per_block[i] = std::max(plan_.bytes_per_block[i], Bytes(aligned(sums[i])));
    }
    return {};
  }

  std::int64_t aligned(std::int64_t block) const {
    const auto row =
        std::find_if(layers_.begin(), layers_.end(), [](const Paged& p) { return p.layer.aligns_blocks; });
    if (row == layers_.end()) return block;
    return divided_up(block, row->layer.token_bytes.value) * row->layer.token_bytes.value;
  }

  std::size_t stage_of(const Paged& paged) const {
    const auto place = static_cast<std::size_t>(paged.layer.layer);
    // Prediction layers run with the last stage.
    return place < stages_.size() ? static_cast<std::size_t>(stages_[place])
                                  : plan_.bytes_per_block.size() - 1;
  }

  std::int64_t in_flight() const {
    return settings_.max_num_batched_tokens *
           (rules_.counts_batches_in_flight ? settings_.batches_in_flight : 1);
  }

  std::int64_t blocks_for(const Paged& paged, std::int64_t length) const {
    const std::int64_t drafts = settings_.num_speculative_tokens;
    switch (paged.layer.kind) {
      case VllmKind::kFull:
      case VllmKind::kLatent:
      case VllmKind::kIndexer:
      case VllmKind::kCompressedKeys:
        return divided_up(divided_up(length, settings_.decode_context_parallel), paged.block_size);
      case VllmKind::kSlidingWindow:
        return divided_up(std::min(paged.layer.reach - 1 + in_flight(), length), paged.block_size) + 1;
      case VllmKind::kChunked:
        return divided_up(std::min(paged.layer.reach + in_flight(), length), paged.block_size);
      case VllmKind::kState:
        if (settings_.state_mode == VllmStateMode::kNone) return 1 + drafts;
        if (settings_.state_mode == VllmStateMode::kAll) return divided_up(length, paged.block_size) + drafts;
        return 2 + drafts + (paged.layer.exports_checkpoint ? 1 : 0);
      case VllmKind::kRing:
        return 1;
    }
    return 0;
  }

  std::int64_t blocks_of_request(std::int64_t length) const {
    std::int64_t blocks = 0;
    for (const Group& group : groups_) blocks += blocks_for(group.front(), length);
    return blocks;
  }

  void describe_groups() {
    for (const Group& group : groups_) {
      const Paged& first = group.front();
      const auto is_first = [&](const Paged& paged) { return stage_of(paged) == 0; };
      plan_.groups.push_back({first.layer.kind, std::count_if(group.begin(), group.end(), is_first),
                              first.block_size, Bytes(first.page),
                              blocks_for(first, settings_.max_model_len)});
      plan_.block_size =
          plan_.block_size == 0 ? first.block_size : std::min(plan_.block_size, first.block_size);
    }
  }

  void count(Bytes available) {
    const Bytes block = *std::max_element(plan_.bytes_per_block.begin(), plan_.bytes_per_block.end());
    plan_.max_model_len = settings_.max_model_len;
    const std::int64_t need = blocks_of_request(settings_.max_model_len);
    if (rules_.override_is_pool && settings_.num_blocks_override)
      available =
          Bytes(checked_product(block.value, *settings_.num_blocks_override).value_or(available.value));
    plan_.available = available - Bytes(rules_.reserves_null_block ? block.value : 0);
    plan_.required = block * need;
    plan_.fits = plan_.required <= plan_.available;
    plan_.longest_len = longest(block);
    if (available.value <= 0)
      plan_.message =
          "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
          "initializing the engine.";
    else if (!plan_.fits)
      plan_.message = refusal();
    if (!plan_.fits || block.value == 0) return;
    plan_.num_blocks = settings_.num_blocks_override.value_or(available / block);
    count_requests(need);
  }

  // The longest length whose blocks fit; windows stop growing, so the need never falls with the length.
  std::int64_t longest(Bytes block) const {
    const auto fits = [&](std::int64_t length) {
      const auto bytes = checked_product(blocks_of_request(length), block.value);
      return bytes && *bytes <= plan_.available.value;
    };
    if (settings_.max_model_len < 1 || !fits(1)) return 0;
    std::int64_t low = 1, high = std::max(settings_.max_model_len, plan_.fits ? settings_.longest_asked : 0);
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (fits(middle))
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  void count_requests(std::int64_t need) {
    const std::int64_t blocks = plan_.num_blocks, length = settings_.max_model_len;
    const auto num_groups = static_cast<std::int64_t>(groups_.size());
    switch (rules_.tokens) {
      case VllmTokens::kBlocks:
        plan_.kv_tokens = blocks * plan_.block_size;
        break;
      case VllmTokens::kBlocksOfGroup:
      case VllmTokens::kLeastBlock:
        plan_.kv_tokens = blocks / num_groups * plan_.block_size * settings_.decode_context_parallel;
        break;
      case VllmTokens::kRequests:
        break;
    }
    plan_.max_concurrency = rules_.concurrency == VllmConcurrency::kTokens
                                ? static_cast<double>(plan_.kv_tokens) / static_cast<double>(length)
                                : static_cast<double>(blocks) / static_cast<double>(need);
    if (rules_.tokens == VllmTokens::kRequests)
      plan_.kv_tokens = static_cast<std::int64_t>(plan_.max_concurrency * static_cast<double>(length));
    char ratio[64];
    std::snprintf(ratio, sizeof ratio, "%.2f", plan_.max_concurrency);
    plan_.message = "GPU KV cache size: " + with_commas(plan_.kv_tokens) +
                    " tokens, Maximum concurrency for " + with_commas(length) +
                    " tokens per request: " + ratio + "x";
  }

  std::string refusal() const {
    std::string text = std::string("To serve at least one request with the ") +
                       (rules_.says_models ? "models's" : "model's") + " max seq len (" +
                       std::to_string(settings_.max_model_len) + "), (" + vllm_gib(plan_.required) +
                       " GiB KV cache is needed, which is larger than the available KV cache memory (" +
                       vllm_gib(plan_.available) + " GiB).";
    if (plan_.longest_len > 0)
      text += " Based on the available memory, the estimated maximum model length is " +
              std::to_string(plan_.longest_len) + ".";
    return text +
           " Try increasing `gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or "
           "decreasing `max_model_len` when initializing the engine. See "
           "https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details.";
  }

  // Two decimals at most and one at least, as Python prints round(x, 2).
  static tl::unexpected<Error> too_large() {
    return fail(ErrorCode::kMalformed, "a block of the cache does not fit 63 bits", "config.json",
                "check the sizes in the config");
  }

  const VllmKvSettings& settings_;
  const VllmRules& rules_;
  std::vector<Paged> layers_;
  std::vector<Group> groups_;
  std::vector<int> stages_;  // of the decoder's layers
  VllmKvPlan plan_;
};

}  // namespace

std::string vllm_gib(Bytes bytes) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes.value) / static_cast<double>(kGiB));
  std::string result(text);
  if (result.ends_with('0')) result.pop_back();
  return result;
}

std::vector<int> pipeline_stages(std::int64_t num_layers, int num_stages) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(num_stages), num_layers / num_stages);
  std::int64_t rest = num_layers % num_stages;
  for (std::size_t i = sizes.size() >= 2 ? sizes.size() - 1 : 1; rest > 0 && i > 0; --i, --rest)
    ++sizes[i - 1];
  std::vector<int> stages;
  for (std::size_t stage = 0; stage < sizes.size(); ++stage)
    stages.insert(stages.end(), static_cast<std::size_t>(sizes[stage]), static_cast<int>(stage));
  return stages;
}

Result<VllmKvPlan> plan_vllm_kv(const std::vector<VllmLayer>& layers, std::int64_t num_model_layers,
                                const VllmKvSettings& settings, const VllmRules& rules, Bytes available) {
  if (settings.block_size < 1 || settings.max_model_len < 1 || settings.max_num_batched_tokens < 1 ||
      settings.batches_in_flight < 1 || settings.pipeline_parallel < 1 ||
      settings.decode_context_parallel < 1 || settings.num_speculative_tokens < 0)
    return fail(ErrorCode::kUsage, "block size, lengths, batches and ranks must each be at least 1", "",
                "check the engine's flags");
  return Planner(settings, rules).plan(layers, num_model_layers, available);
}

}  // namespace plimsoll::memory
