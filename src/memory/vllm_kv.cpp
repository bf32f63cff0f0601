// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_kv.h"

#include <algorithm>

#include "base/division.h"
#include "memory/vllm_groups.h"
#include "memory/vllm_sentences.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kMostBlocks = std::int64_t{1} << 40;

using Paged = VllmPaged;
using Group = VllmPagedGroup;

class Planner {
 public:
  Planner(const VllmKvSettings& settings, const VllmRules& rules) : settings_(settings), rules_(rules) {}

  Result<VllmKvPlan> plan(const std::vector<VllmLayer>& layers, std::int64_t num_model_layers,
                          Bytes available) {
    PLIMSOLL_TRY(grouped_, group_vllm_layers(layers, settings_, rules_));
    plan_.state_block_size = grouped_.state_block_size;
    PLIMSOLL_TRY_VOID(size_blocks(num_model_layers));
    describe_groups();
    count(available);
    return std::move(plan_);
  }

 private:
  Status size_blocks(std::int64_t num_model_layers) {
    stages_ = pipeline_stages(num_model_layers, settings_.pipeline_parallel);
    plan_.bytes_per_block.assign(static_cast<std::size_t>(settings_.pipeline_parallel), Bytes(0));
    for (const Group& group : grouped_.groups) {
      std::vector<std::int64_t> sums(plan_.bytes_per_block.size(), 0);
      for (const Paged& paged : group) {
        auto& sum = sums[stage_of(paged)];
        const auto more = checked_sum(sum, paged.page);
        if (!more) return vllm_block_too_large();
        sum = *more;
      }
      for (std::size_t i = 0; i < sums.size(); ++i)
        plan_.bytes_per_block[i] = std::max(plan_.bytes_per_block[i], Bytes(aligned(sums[i])));
    }
    request_blocks_ = plan_.bytes_per_block;
    return grouped_.is_compressed ? size_compressed_blocks() : Status();
  }

  Status size_compressed_blocks() {
    for (std::size_t stage = 0; stage < plan_.bytes_per_block.size(); ++stage) {
      std::vector<Group> groups;
      for (const Group& group : grouped_.groups) {
        Group own;
        std::copy_if(group.begin(), group.end(), std::back_inserter(own),
                     [&](const Paged& paged) { return stage_of(paged) == stage; });
        if (!own.empty()) groups.push_back(std::move(own));
      }
      const auto block = compressed_block(groups, rules_.packing);
      if (!block) return fail(block.error());
      plan_.bytes_per_block[stage] = block->pool;
      request_blocks_[stage] = block->request;
    }
    return {};
  }

  std::int64_t aligned(std::int64_t block) const {
    for (const Group& group : grouped_.groups)
      for (const Paged& paged : group)
        if (paged.layer.aligns_blocks)
          return divided_up(block, paged.layer.token_bytes.value) * paged.layer.token_bytes.value;
    return block;
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
    const bool has_drafts = rules_.draft_states != VllmDraftStates::kNone;
    const std::int64_t drafts = has_drafts ? settings_.num_speculative_tokens : 0;
    switch (paged.layer.kind) {
      case VllmKind::kFull:
      case VllmKind::kLatent:
      case VllmKind::kIndexer:
      case VllmKind::kCompressedKeys:
        return divided_up(divided_up(length, settings_.decode_context_parallel), paged.block_size);
      case VllmKind::kSlidingWindow:
      case VllmKind::kLatentWindow:
      case VllmKind::kCompressorState:
        return divided_up(std::min(paged.layer.reach - 1 + in_flight(), length), paged.block_size) + 1;
      case VllmKind::kChunked:
        return divided_up(std::min(paged.layer.reach + in_flight(), length), paged.block_size);
      case VllmKind::kState:
        if (settings_.state_mode == VllmStateMode::kNone) return 1 + drafts;
        if (settings_.state_mode == VllmStateMode::kAll)
          return divided_up(length, paged.block_size) +
                 (rules_.draft_states == VllmDraftStates::kEvery ? drafts : 0);
        return 2 + drafts + (rules_.keeps_checkpoints && paged.layer.exports_checkpoint ? 1 : 0);
      case VllmKind::kRing:
        return 1;
    }
    return 0;
  }

  std::int64_t blocks_of_request(std::int64_t length) const {
    std::int64_t blocks = 0;
    for (const Group& group : grouped_.groups) blocks += blocks_for(group.front(), length);
    return blocks;
  }

  void describe_groups() {
    for (const Group& group : grouped_.groups) {
      const Paged& first = group.front();
      const auto is_first = [&](const Paged& paged) { return stage_of(paged) == 0; };
      plan_.groups.push_back({first.layer.kind, std::count_if(group.begin(), group.end(), is_first),
                              first.block_size, Bytes(first.page),
                              blocks_for(first, settings_.max_model_len)});
      plan_.block_size =
          plan_.block_size == 0 ? first.block_size : std::min(plan_.block_size, first.block_size);
    }
  }

  /// Bytes by which the pool is divided: of the largest stage, or of all layers where stages count all.
  Bytes pool_block() const {
    if (grouped_.groups.empty()) return Bytes(0);
    const auto& front = grouped_.groups.front();
    const bool differs = grouped_.groups.size() == 1 &&
                         std::any_of(front.begin(), front.end(),
                                     [&](const auto& paged) { return paged.page != front.front().page; });
    if (differs && !rules_.splits_differing_pages) return model_block();
    return *std::max_element(plan_.bytes_per_block.begin(), plan_.bytes_per_block.end());
  }

  /// Of the largest group, whatever stages its layers are on.
  Bytes model_block() const {
    Bytes largest(0);
    for (const Group& group : grouped_.groups) largest = std::max(largest, pages_of(group));
    return largest;
  }

  /// What one request of the length is held to need on a stage.
  std::optional<std::int64_t> needed(std::int64_t length, std::size_t stage) const {
    if (rules_.need == VllmNeed::kGroups || grouped_.groups.empty())
      return checked_product(blocks_of_request(length), request_blocks_[stage].value);
    if (rules_.need == VllmNeed::kFirstGroup)
      return checked_product(blocks_for(grouped_.groups.front().front(), length), model_block().value);
    std::int64_t sum = 0;
    for (const Paged& paged : grouped_.layers) {
      if (stage_of(paged) != stage) continue;
      const auto bytes = checked_product(blocks_for(paged, length), paged.page);
      const auto more = bytes ? checked_sum(sum, *bytes) : std::nullopt;
      if (!more) return std::nullopt;
      sum = *more;
    }
    return sum;
  }

  /// What a stage holds it against.
  Bytes available_on(std::size_t stage, Bytes available) const {
    const Bytes block = plan_.bytes_per_block[stage];
    if (rules_.override_is_pool && settings_.num_blocks_override)
      available =
          Bytes(checked_product(block.value, *settings_.num_blocks_override).value_or(available.value));
    return available - Bytes(rules_.reserves_null_block ? block.value : 0);
  }

  bool fits(std::int64_t length, std::size_t stage, Bytes available) const {
    const auto bytes = needed(length, stage);
    return bytes && Bytes(*bytes) <= available_on(stage, available);
  }

  // The first stage that refuses speaks; required and available are those of the one that needs most.
  void count(Bytes available) {
    plan_.max_model_len = settings_.max_model_len;
    plan_.fits = true;
    for (std::size_t stage = 0; stage < plan_.bytes_per_block.size(); ++stage) {
      const Bytes bytes(needed(settings_.max_model_len, stage).value_or(INT64_MAX));
      const VllmShortage shortage{settings_.max_model_len, bytes, available_on(stage, available),
                                  longest(stage, stage, available)};
      plan_.longest_len =
          stage == 0 ? shortage.longest_len : std::min(plan_.longest_len, shortage.longest_len);
      if (stage == 0 || bytes > plan_.required) {
        plan_.required = bytes;
        plan_.available = shortage.available;
      }
      if (plan_.message.empty() && (shortage.available.value <= 0 || bytes > shortage.available))
        plan_.message = vllm_refusal(shortage, rules_);
      plan_.fits &= bytes <= shortage.available;
    }
    const Bytes block = pool_block();
    if (!plan_.fits || block.value == 0) return;
    plan_.longest_len = longest(0, plan_.bytes_per_block.size() - 1, available);
    plan_.num_blocks = settings_.num_blocks_override.value_or(available / block);
    count_requests(grouped_.is_compressed && rules_.concurrency == VllmConcurrency::kBytes
                       ? blocks_by_bytes()
                       : blocks_of_request(settings_.max_model_len));
    plan_.message = vllm_capacity_line(plan_);
  }

  // The request's bytes in blocks of the first group, as releases count that compare bytes.
  std::int64_t blocks_by_bytes() const {
    Bytes bytes;
    for (const Group& group : grouped_.groups)
      bytes += pages_of(group) * blocks_for(group.front(), settings_.max_model_len);
    return divided_up(bytes.value, pages_of(grouped_.groups.front()).value);
  }

  // The longest length whose blocks fit on these stages; windows stop growing, so the need never falls.
  std::int64_t longest(std::size_t first, std::size_t last, Bytes available) const {
    const auto fits_all = [&](std::int64_t length) {
      for (std::size_t stage = first; stage <= last; ++stage)
        if (!fits(length, stage, available)) return false;
      return true;
    };
    if (!fits_all(1)) return 0;
    std::int64_t low = 1, high = std::max(settings_.max_model_len, plan_.fits ? settings_.longest_asked : 0);
    while (low < high) {
      const std::int64_t middle = low + (high - low + 1) / 2;
      if (fits_all(middle))
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  void count_requests(std::int64_t need) {
    const std::int64_t blocks = plan_.num_blocks, length = settings_.max_model_len;
    const auto num_groups = static_cast<std::int64_t>(grouped_.groups.size());
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
  }

  const VllmKvSettings& settings_;
  const VllmRules& rules_;
  VllmGroups grouped_;
  std::vector<Bytes> request_blocks_;  // what each block of a request counts in the fit check, by stage
  std::vector<int> stages_;            // of the decoder's layers
  VllmKvPlan plan_;
};

}  // namespace

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
  if (settings.num_blocks_override.value_or(1) > kMostBlocks || settings.num_blocks_override.value_or(1) < 1)
    return fail(ErrorCode::kUsage, "a pool of " + std::to_string(*settings.num_blocks_override) + " blocks",
                "--num-gpu-blocks-override", "give 1 to " + std::to_string(kMostBlocks));
  return Planner(settings, rules).plan(layers, num_model_layers, available);
}

}  // namespace plimsoll::memory
