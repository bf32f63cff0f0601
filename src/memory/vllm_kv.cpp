// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_kv.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/division.h"
#include "memory/vllm_groups.h"

namespace plimsoll::memory {
namespace {

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
    if (grouped_.is_compressed) return size_compressed_blocks();
    request_block_ = *std::max_element(plan_.bytes_per_block.begin(), plan_.bytes_per_block.end());
    return {};
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
      request_block_ = std::max(request_block_, block->request);
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
    const std::int64_t drafts = settings_.num_speculative_tokens;
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
        if (settings_.state_mode == VllmStateMode::kAll) return divided_up(length, paged.block_size) + drafts;
        return 2 + drafts + (paged.layer.exports_checkpoint ? 1 : 0);
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

  void count(Bytes available) {
    const Bytes block = *std::max_element(plan_.bytes_per_block.begin(), plan_.bytes_per_block.end());
    plan_.max_model_len = settings_.max_model_len;
    const std::int64_t need = blocks_of_request(settings_.max_model_len);
    if (rules_.override_is_pool && settings_.num_blocks_override)
      available =
          Bytes(checked_product(block.value, *settings_.num_blocks_override).value_or(available.value));
    plan_.available = available - Bytes(rules_.reserves_null_block ? block.value : 0);
    plan_.required = request_block_ * need;
    plan_.fits = plan_.required <= plan_.available;
    plan_.longest_len = longest();
    if (available.value <= 0)
      plan_.message =
          "No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
          "initializing the engine.";
    else if (!plan_.fits)
      plan_.message = refusal();
    if (!plan_.fits || block.value == 0) return;
    plan_.num_blocks = settings_.num_blocks_override.value_or(available / block);
    count_requests(grouped_.is_compressed && rules_.concurrency == VllmConcurrency::kBytes ? blocks_by_bytes()
                                                                                           : need);
  }

  // The request's bytes in blocks of the first group, as releases count that compare bytes.
  std::int64_t blocks_by_bytes() const {
    Bytes bytes;
    for (const Group& group : grouped_.groups)
      bytes += pages_of(group) * blocks_for(group.front(), settings_.max_model_len);
    return divided_up(bytes.value, pages_of(grouped_.groups.front()).value);
  }

  // The longest length whose blocks fit; windows stop growing, so the need never falls with the length.
  std::int64_t longest() const {
    const auto fits = [&](std::int64_t length) {
      const auto bytes = checked_product(blocks_of_request(length), request_block_.value);
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

  const VllmKvSettings& settings_;
  const VllmRules& rules_;
  VllmGroups grouped_;
  Bytes request_block_;      // what each block of a request counts in the fit check
  std::vector<int> stages_;  // of the decoder's layers
  VllmKvPlan plan_;
};

}  // namespace

// Two decimals at most and one at least, as Python prints round(x, 2).
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
