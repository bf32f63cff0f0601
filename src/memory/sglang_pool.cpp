// SPDX-License-Identifier: Apache-2.0
#include "memory/sglang_pool.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "memory/kv_cache.h"

namespace plimsoll::memory {
namespace {

// Source: arg_groups/memory_hook.py of 0.5.23. MiB of a GPU below which a row holds.
struct Capacity {
  std::int64_t below_mib, chunk, batch, batch_of_four;  // the last with four ranks or more
};
constexpr std::array<Capacity, 5> kCapacities{{
    {20 * 1024, 2048, 8, 8},
    {35 * 1024, 4096, 48, 160},
    {60 * 1024, 4096, 32, 160},
    {160 * 1024, 8192, 256, 512},
    {std::int64_t{1} << 40, 16384, 512, 512},
}};

constexpr double kLeastReserveMib = 512;
constexpr double kAfterCaptureMib = 1536;
constexpr double kMibPerToken = 1.5;
constexpr double kMibPerRank = 1024.0 / 8;
constexpr double kMibPerGraphRequest = 2;
constexpr double kMibPerPrefillGraph = 8;
constexpr double kLatentGraphsMib = 1536;
constexpr std::int64_t kLargeGpuMib = 60 * 1024;
constexpr double kLargeGpuReserveMib = 10 * 1024;

constexpr double kWindowRatio = 0.8;     // --swa-full-tokens-ratio
constexpr double kStateRatio = 0.9;      // --mamba-full-memory-ratio
constexpr std::int64_t kStateSlots = 3;  // a request holds, where prefixes are cached
constexpr std::int64_t kFp8LatentGroup = 128;
constexpr int kDraftRequests = 48;  // --max-running-requests where drafts are on
constexpr std::int64_t kRequestsPerContext = 512, kFewestRequests = 2048, kMostRequests = 4096;

// Token counts that prefill graphs are captured for, up to `most`.
std::int64_t num_prefill_graphs(std::int64_t most) {
  std::int64_t count = 0;
  const auto range = [&](std::int64_t from, std::int64_t to, std::int64_t step) {
    for (std::int64_t size = from; size <= std::min(to, most); size += step) ++count;
  };
  range(4, 32, 4);
  range(48, 256, 16);
  range(288, 512, 32);
  range(576, 1024, 64);
  range(1280, 4096, 256);
  range(4608, most, 512);
  return count;
}

tl::unexpected<Error> unsupported(const std::string& what) {
  return fail(ErrorCode::kUnsupported, "how SGLang's pool holds " + what + " is not known here",
              "config.json", "use --engine any for the formula");
}

// Of one token on one pipeline stage.
struct StageCells {
  Bytes kv, index, window;
  Bytes index_of_layer;  // of one that has an indexer
  std::int64_t kv_layers = 0, window_layers = 0, state_layers = 0;

  Bytes full() const { return kv + index; }
};

class PoolSizer {
 public:
  PoolSizer(const model::ModelSpec& spec, const SglangPoolSettings& settings)
      : spec_(spec), settings_(settings), cells_(static_cast<std::size_t>(settings.pipeline_parallel)) {}

  Result<SglangPool> size(Bytes available) {
    if (settings_.context_tokens < 1 || settings_.page_size < 1)
      return fail(ErrorCode::kUsage, "lengths and pages begin at 1", "--max-model-len, --block-size",
                  "give larger numbers");
    const std::vector<int> places =
        sglang_stages(static_cast<std::int64_t>(spec_.layers.size()), settings_.pipeline_parallel);
    for (std::size_t i = 0; i < spec_.layers.size(); ++i)
      PLIMSOLL_TRY_VOID(add(spec_.layers[i], cells_[static_cast<std::size_t>(places[i])]));
    share_states();
    add_drafts();
    std::int64_t rest = std::max<std::int64_t>(0, available.value);
    if (pool_.state_bytes > Bytes(0)) rest = take_states(rest);
    size_tokens(rest);
    count_requests();
    return pool_;
  }

 private:
  Status add(const model::Layer& layer, StageCells& cells) {
    if (layer.kv_source) return {};
    const auto* attention = std::get_if<model::Attention>(&layer.mixer);
    const auto* latent = std::get_if<model::Latent>(&layer.mixer);
    if (attention && attention->is_cross) return unsupported("cross attention");
    if (attention && attention->indexer) return unsupported("index keys beside keys and values");
    if (latent && (latent->window_tokens || latent->tokens_per_entry > 1))
      return unsupported("compressed latent vectors");
    PLIMSOLL_TRY(Bytes bytes, kv_layer_bytes_per_token(layer, settings_.cache_dtype,
                                                       latent ? 1 : settings_.tensor_parallel));
    if (latent && latent->indexer) {
      const bool is_fp8 = stored_bytes(settings_.cache_dtype, 1) == Bytes(1);
      // In 8 bit: the latent, a scale of 32 bits for each 128, the rotary part in 16 bit.
      if (is_fp8)
        bytes = Bytes(latent->kv_lora_rank + latent->kv_lora_rank / kFp8LatentGroup * 4 +
                      latent->qk_rope_head_dim * 2);
      if (latent->indexer->heads > 0) {
        cells.index_of_layer =
            Bytes(latent->indexer->head_dim + latent->indexer->head_dim / kFp8LatentGroup * 4);
        cells.index += cells.index_of_layer;
      }
    }
    const bool has_window = attention && (attention->window_tokens || attention->chunk_tokens);
    if (has_window && settings_.has_window_pool) {
      cells.window += bytes;
      ++cells.window_layers;
    } else if (bytes > Bytes(0)) {
      cells.kv += bytes;
      ++cells.kv_layers;
    }
    const auto* own = std::get_if<model::State>(&layer.mixer);
    if (own) PLIMSOLL_TRY_VOID(add_state(*own));
    for (const model::State& state : layer.side_states) PLIMSOLL_TRY_VOID(add_state(state));
    cells.state_layers += own || !layer.side_states.empty() ? 1 : 0;
    return {};
  }

  // Convolutions in 16 bit; recurrent states in 32 unless the config names a type.
  Status add_state(const model::State& state) {
    if (state.kind == model::StateKind::kIndexRing) return unsupported("rings of index keys");
    const std::int64_t ranks = state.is_copied ? 1 : settings_.tensor_parallel;
    if (state.convolution_elements % ranks != 0 || state.recurrent_elements % ranks != 0)
      return fail(ErrorCode::kNo, "states cannot be split over " + std::to_string(ranks) + " ranks",
                  "--tensor-parallel-size", "choose a size that divides the heads");
    const auto convolution = stored_bytes(DType::kBF16, state.convolution_elements / ranks);
    const auto recurrent =
        stored_bytes(state.recurrent_dtype.value_or(DType::kF32), state.recurrent_elements / ranks);
    if (!convolution || !recurrent) return unsupported("a state of a type that has no whole bytes");
    pool_.state_bytes += *convolution + *recurrent;
    return {};
  }

  // Every stage counts with what the one with most layers of states holds.
  void share_states() {
    std::int64_t most = 0, all = 0;
    for (const StageCells& cells : cells_) {
      most = std::max(most, cells.state_layers);
      all += cells.state_layers;
    }
    if (all == 0 || most == all) return;
    const double share = static_cast<double>(most) / static_cast<double>(all);
    pool_.state_bytes =
        Bytes(static_cast<std::int64_t>(static_cast<double>(pool_.state_bytes.value) * share));
  }

  // Layers that draft are taken to be as the model's own; windows where it has a pool for them.
  void add_drafts() {
    const std::int64_t drafts = settings_.draft_layers;
    if (drafts == 0) return;
    for (StageCells& cells : cells_) {
      if (cells.window_layers > 0) {
        cells.window += Bytes(cells.window.value / cells.window_layers * drafts);
      } else if (cells.kv_layers > 0) {
        cells.kv += Bytes(cells.kv.value * drafts / cells.kv_layers);
        cells.index += cells.index_of_layer * drafts;
      }
    }
  }

  // As the engine computes in doubles. Each step of drafts keeps the states of all requests that run.
  std::int64_t take_states(std::int64_t rest) {
    const std::int64_t slot = pool_.state_bytes.value;
    const auto bytes = static_cast<double>(slot);
    const std::int64_t each = slots_per_request();
    const std::int64_t drafts = settings_.draft_tokens, most = settings_.max_requests.value_or(0);
    if (!settings_.has_prefix_cache && settings_.max_requests) {
      pool_.state_slots = most;
    } else {
      const double budget = static_cast<double>(rest) * kStateRatio / (1 + kStateRatio);
      const double scratch = static_cast<double>(drafts) / static_cast<double>(each);
      pool_.state_slots = static_cast<std::int64_t>(
          std::floor((budget - bytes * static_cast<double>(1 + drafts)) / (bytes * (1 + scratch))));
    }
    pool_.state_slots = std::max<std::int64_t>(0, pool_.state_slots);
    if (drafts > 0)
      pool_.draft_state_bytes = Bytes(slot * drafts * (std::min(most, pool_.state_slots / each) + 1));
    return std::max<std::int64_t>(0, rest - pool_.draft_state_bytes.value - (pool_.state_slots + 1) * slot);
  }

  std::int64_t slots_per_request() const { return settings_.has_prefix_cache ? kStateSlots : 1; }

  std::int64_t whole_pages(std::int64_t tokens) const {
    return tokens / settings_.page_size * settings_.page_size;
  }

  // Tokens of one stage's first pool; nothing where it keeps none.
  std::optional<std::int64_t> tokens_of(const StageCells& cells, std::int64_t rest) const {
    const std::int64_t full = cells.full().value, window = cells.window.value;
    if (full == 0 && window == 0) return std::nullopt;
    if (window == 0 || full == 0) return whole_pages(rest / (full + window));
    const double cell = static_cast<double>(full) + kWindowRatio * static_cast<double>(window);
    return whole_pages(static_cast<std::int64_t>(static_cast<double>(rest) / cell));
  }

  // The stage that holds fewest decides for all.
  void size_tokens(std::int64_t rest) {
    const StageCells* fewest = nullptr;
    for (const StageCells& cells : cells_) {
      pool_.stages.push_back(cells.full() + cells.window);
      const auto tokens = tokens_of(cells, rest);
      if (!tokens || (fewest && *tokens >= pool_.tokens)) continue;
      fewest = &cells;
      pool_.tokens = *tokens;
    }
    if (!fewest) {
      pool_.tokens = whole_pages(settings_.context_tokens);
      return;
    }
    pool_.token_bytes = fewest->full();
    pool_.window_token_bytes = fewest->window;
    if (fewest->window == Bytes(0)) return;
    pool_.window_tokens =
        fewest->full() == Bytes(0)
            ? pool_.tokens
            : whole_pages(static_cast<std::int64_t>(static_cast<double>(pool_.tokens) * kWindowRatio));
  }

  void count_requests() {
    const auto estimate = static_cast<std::int64_t>(static_cast<double>(pool_.tokens) /
                                                    static_cast<double>(settings_.context_tokens) *
                                                    static_cast<double>(kRequestsPerContext));
    std::int64_t most = std::clamp(estimate, kFewestRequests, kMostRequests);
    if (settings_.max_requests) most = *settings_.max_requests;
    pool_.max_requests = std::min(most, pool_.tokens / 2);
    if (pool_.state_bytes > Bytes(0))
      pool_.max_requests = std::min(pool_.max_requests, pool_.state_slots / slots_per_request());
  }

  const model::ModelSpec& spec_;
  const SglangPoolSettings& settings_;
  std::vector<StageCells> cells_;  // [pipeline stages]
  SglangPool pool_;
};

}  // namespace

bool sglang_keeps_latents(const model::ModelSpec& spec) {
  return std::any_of(spec.layers.begin(), spec.layers.end(), [](const model::Layer& layer) {
    return std::holds_alternative<model::Latent>(layer.mixer);
  });
}

std::optional<int> sglang_requests(std::optional<int> asked, bool has_drafts) {
  return asked || !has_drafts ? asked : std::optional(kDraftRequests);
}

std::vector<int> sglang_stages(std::int64_t num_layers, int num_stages) {
  std::vector<int> places;
  const std::int64_t each = num_layers / num_stages, longer = num_layers % num_stages;
  for (int stage = 0; stage < num_stages; ++stage)
    places.insert(places.end(), static_cast<std::size_t>(each + (stage >= num_stages - longer ? 1 : 0)),
                  stage);
  return places;
}

SglangDefaults sglang_defaults(Bytes gpu_memory, const SglangLayout& layout) {
  const std::int64_t mib = std::max<std::int64_t>(1, gpu_memory.value / kMiB);
  const auto row = std::find_if(kCapacities.begin(), kCapacities.end() - 1,
                                [&](const Capacity& capacity) { return mib < capacity.below_mib; });
  SglangDefaults defaults;
  defaults.chunk_tokens = layout.chunk.value_or(static_cast<int>(row->chunk));
  defaults.graph_batch = layout.tensor_parallel < 4 ? row->batch : row->batch_of_four;
  if (layout.requests) defaults.graph_batch = std::min<std::int64_t>(defaults.graph_batch, *layout.requests);
  // With stages prefill runs without graphs, whose memory is then not known before.
  const bool has_prefill_graphs = !layout.is_eager && layout.pipeline_parallel == 1;
  defaults.sizes_after_capture = !layout.is_latent && has_prefill_graphs;
  const double ranks = kMibPerRank * layout.tensor_parallel * layout.pipeline_parallel;
  double reserve = kAfterCaptureMib + ranks;
  if (!defaults.sizes_after_capture) {
    reserve = kLeastReserveMib +
              kMibPerToken * static_cast<double>(std::max<std::int64_t>(defaults.chunk_tokens, 2048)) + ranks;
    if (!layout.is_eager) reserve += kMibPerGraphRequest * static_cast<double>(defaults.graph_batch);
    if (has_prefill_graphs)
      reserve += layout.is_latent
                     ? kLatentGraphsMib
                     : kMibPerPrefillGraph * static_cast<double>(num_prefill_graphs(defaults.chunk_tokens));
    if (mib > kLargeGpuMib) reserve = std::max(reserve, kLargeGpuReserveMib);
  }
  const auto all = static_cast<double>(mib);
  defaults.static_share = std::max(0.0, std::round((all - reserve) / all * 1000) / 1000);
  return defaults;
}

Bytes SglangPool::used() const {
  Bytes bytes = token_bytes * tokens + window_token_bytes * window_tokens + draft_state_bytes;
  if (state_bytes > Bytes(0)) bytes += state_bytes * (state_slots + 1);
  return bytes;
}

Result<SglangPool> sglang_pool(const model::ModelSpec& spec, const SglangPoolSettings& settings,
                               Bytes available) {
  return PoolSizer(spec, settings).size(available);
}

}  // namespace plimsoll::memory
