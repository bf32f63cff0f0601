// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_layers.h"

#include <algorithm>
#include <string>

#include "base/division.h"
#include "memory/kv_cache.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kFp8DsMlaToken = 656;  // 512 fp8 values, 4 scales of f32, 64 rotary values of 16 bit
constexpr int kSkippedEnds = 2;               // layers
constexpr std::int64_t kPaddedLatentBytes = 256;
// DeepSeek V4: sizes that its kernels ask for.
constexpr std::int64_t kLightRatio = 4, kHeavyRatio = 128;  // tokens that one vector stands for
constexpr std::int64_t kV4ScaleGroup = 64;                  // values of 8 bit that share a scale byte
constexpr std::int64_t kV4PageStep = 576;                   // bytes
constexpr std::int64_t kV4WindowBlock = 64, kV4LightBlock = 4, kV4HeavyBlock = 8;  // tokens
constexpr int kIndexerScaleGroup = 128;  // values of an index key that share one f32 scale

class LayerList {
 public:
  LayerList(const model::ModelSpec& spec, const VllmLayerSettings& settings)
      : spec_(spec),
        settings_(settings),
        keeps_states_(std::any_of(spec.layers.begin(), spec.layers.end(), [](const model::Layer& layer) {
          return std::holds_alternative<model::State>(layer.mixer) || !layer.side_states.empty();
        })) {}

  Status add(const model::Layer& layer, int place) {
    place_ = place;
    if (!layer.kv_source) {
      for (int i = 0; i < layer.num_mixers; ++i) {
        PLIMSOLL_TRY_VOID(
            std::visit([&](const auto& mixer) { return add_mixer(layer, mixer); }, layer.mixer));
      }
    }
    for (const model::State& state : layer.side_states) PLIMSOLL_TRY_VOID(add_state(state));
    return {};
  }

  std::vector<VllmLayer> take() { return std::move(layers_); }

 private:
  DType dtype() const { return settings_.cache == VllmCacheType::k16Bit ? DType::kBF16 : DType::kF8E4M3; }

  bool stays_16_bit() const {
    if (!settings_.format || !settings_.format->skips_ends || keeps_states_) return false;
    const auto num_layers = static_cast<int>(spec_.layers.size());
    const int ends = std::min(kSkippedEnds, num_layers / 2);
    return place_ < ends || (place_ >= num_layers - ends && place_ < num_layers);
  }

  // Bytes of one mixer's token, where one head's keys and values take `key` and `value` elements.
  Result<Bytes> token_bytes(const model::Layer& layer, std::int64_t key, std::int64_t value,
                            int ranks) const {
    const bool is_packed = settings_.cache == VllmCacheType::kPacked;
    const DType type = is_packed && stays_16_bit() ? DType::kBF16 : dtype();
    PLIMSOLL_TRY(const Bytes all, kv_layer_bytes_per_token(layer, type, ranks));
    const Bytes own(all.value / layer.num_mixers);
    if (!is_packed || stays_16_bit()) return own;
    return vllm_head_bytes(*settings_.format, key, value) * (own.value / (key + value));
  }

  Status add_mixer(const model::Layer& layer, const model::Attention& attention) {
    if (attention.is_cross) return unsupported("cross attention");
    VllmLayer entry{.kind = attention.chunk_tokens    ? VllmKind::kChunked
                            : attention.window_tokens ? VllmKind::kSlidingWindow
                                                      : VllmKind::kFull,
                    .layer = place_};
    if (settings_.format && settings_.format->skips_ends && entry.kind != VllmKind::kFull)
      return unsupported("windows and chunks in " + std::string(settings_.format->name));
    PLIMSOLL_TRY(entry.token_bytes,
                 token_bytes(layer, attention.head_dim, attention.value_dim(), settings_.tensor_parallel));
    entry.reach = attention.chunk_tokens ? *attention.chunk_tokens : attention.window_tokens.value_or(0);
    layers_.push_back(entry);
    return add_indexer(attention.indexer);
  }

  Status add_mixer(const model::Layer& layer, const model::Latent& latent) {
    if (latent.window_tokens) return add_compressed(latent);
    if (latent.tokens_per_entry > 1) return unsupported("compressed latent vectors without a window");
    VllmLayer entry{.kind = VllmKind::kLatent, .layer = place_};
    if (settings_.format && !settings_.format->for_latent)
      return unsupported("latent vectors in " + std::string(settings_.format->name));
    PLIMSOLL_TRY(const Bytes own, token_bytes(layer, latent.width(), 0, 1));
    entry.token_bytes =
        settings_.cache == VllmCacheType::kFp8DsMla ? Bytes(kFp8DsMlaToken) : padded_latent(own);
    entry.aligns_blocks =
        settings_.aligns_rows && latent.indexer.has_value() && settings_.cache == VllmCacheType::k16Bit;
    layers_.push_back(entry);
    return add_indexer(latent.indexer);
  }

  // Beside each window of latent vectors: compressed ones, keys of their indexer, and the sums that the
  // tokens of an unfinished vector have come to.
  Status add_compressed(const model::Latent& latent) {
    if (settings_.cache != VllmCacheType::kFp8DsMla)
      return unsupported("compressed latent vectors in 16 bit (give --kv-cache-dtype fp8)");
    const std::int64_t ratio = latent.tokens_per_entry;
    if (ratio != 1 && ratio != kLightRatio && ratio != kHeavyRatio)
      return unsupported("latent vectors that stand for " + std::to_string(ratio) + " tokens");
    const std::int64_t plain = latent.kv_lora_rank;
    const Bytes entry(plain + 2 * latent.qk_rope_head_dim + divided_up(plain, kV4ScaleGroup) + 1);
    VllmLayer window{.kind = VllmKind::kLatentWindow, .layer = place_, .token_bytes = entry};
    window.reach = *latent.window_tokens;
    window.own_block = kV4WindowBlock;
    window.page_step = kV4PageStep;
    layers_.push_back(window);
    if (ratio == 1) return {};
    VllmLayer whole{.kind = VllmKind::kLatent, .layer = place_, .token_bytes = entry};
    whole.entry_tokens = ratio;
    whole.page_step = kV4PageStep;
    layers_.push_back(whole);
    add_compressor(latent.width(), ratio);
    if (!latent.indexer) return {};
    const std::int64_t width = latent.indexer->head_dim;
    whole.kind = VllmKind::kIndexer;
    whole.token_bytes = Bytes(width + width / kIndexerScaleGroup * 4);
    layers_.push_back(whole);
    add_compressor(width, ratio);
    return {};
  }

  // Values and scores of f32; lightly compressed vectors overlap, and so keep two of each.
  void add_compressor(std::int64_t width, std::int64_t ratio) {
    const std::int64_t overlap = ratio == kLightRatio ? 2 : 1;
    VllmLayer state{
        .kind = VllmKind::kCompressorState, .layer = place_, .token_bytes = Bytes(2 * overlap * width * 4)};
    state.reach = overlap * ratio;
    state.own_block = ratio == kLightRatio ? kV4LightBlock : kV4HeavyBlock;
    state.page_step = kV4PageStep;
    layers_.push_back(state);
  }

  // Values, not bytes, are filled up: as many as the activations' type has in 256 bytes.
  Bytes padded_latent(Bytes token) const {
    if (!settings_.pads_latent) return token;
    const std::int64_t width = stored_bytes(dtype(), 1).value_or(Bytes(2)).value;
    const std::int64_t step =
        kPaddedLatentBytes / stored_bytes(settings_.activation_dtype, 1).value_or(Bytes(2)).value;
    return Bytes((token.value / width + step - 1) / step * step * width);
  }

  Status add_mixer(const model::Layer&, const model::State& state) { return add_state(state); }
  Status add_mixer(const model::Layer&, const model::NoMixer&) { return {}; }
  Status add_mixer(const model::Layer&, const model::TwoSided&) { return {}; }

  // Keys of one byte a value with a scale for each group of them, on every rank.
  Status add_indexer(const std::optional<model::Indexer>& indexer) {
    if (!indexer || indexer->heads == 0) return {};
    const std::int64_t width = indexer->head_dim;
    if (indexer->tokens_per_key > 1) {
      const std::int64_t key = width * (settings_.has_fp8_index_keys ? 1 : 2);
      if (key % indexer->tokens_per_key != 0)
        return unsupported("index keys that fill no whole byte a token");
      layers_.push_back({.kind = VllmKind::kCompressedKeys,
                         .layer = place_,
                         .token_bytes = Bytes(key / indexer->tokens_per_key)});
      return {};
    }
    layers_.push_back({.kind = VllmKind::kIndexer,
                       .layer = place_,
                       .token_bytes = Bytes(width + width / kIndexerScaleGroup * 4)});
    return {};
  }

  Status add_state(const model::State& state) {
    if (state.kind == model::StateKind::kIndexRing) {  // lies in the blocks of the attention beside it
      layers_.push_back({.kind = VllmKind::kRing, .layer = place_});
      return {};
    }
    const std::int64_t ranks = state.is_copied ? 1 : settings_.tensor_parallel;
    if (state.convolution_elements > 0 && state.kernel < 2)
      return unsupported("a convolution of its own kind");
    const std::int64_t columns = state.kernel - 1;
    std::int64_t channels = columns > 0 ? state.convolution_elements / columns : 0;
    // Groups that the ranks do not divide are copied until each rank has one.
    const std::int64_t own = channels - state.groups * state.group_channels;
    if (state.groups > 0)
      channels = own + (state.groups % ranks == 0 ? state.groups : ranks) * state.group_channels;
    if (channels % ranks != 0 || state.recurrent_elements % ranks != 0 ||
        (state.heads > 0 && state.heads % ranks != 0))
      return fail(ErrorCode::kNo,
                  "states of " + std::to_string(state.heads) + " heads cannot be split over " +
                      std::to_string(ranks) + " ranks",
                  "--tensor-parallel-size", "choose a size that divides the heads");
    const std::int64_t convolution = channels / ranks * (columns + settings_.num_speculative_tokens);
    const auto convolved = stored_bytes(state.convolution_dtype.value_or(settings_.activation_dtype),
                                        columns > 0 ? convolution : 0);
    const auto recurrent = stored_bytes(recurrent_dtype(state), state.recurrent_elements / ranks);
    if (!convolved || !recurrent) return unsupported("a state of a type that has no whole bytes");
    layers_.push_back(
        {.kind = VllmKind::kState,
         .layer = place_,
         .state_bytes = *convolved + *recurrent,
         .exports_checkpoint = state.kind == model::StateKind::kMamba2 ||
                               (settings_.gdn_exports_checkpoint &&
                                (state.kind == model::StateKind::kGatedDeltaNet || state.is_copied)),
         .can_keep_all = state.kind == model::StateKind::kMamba || state.kind == model::StateKind::kMamba2,
         .chunk_tokens = state.chunk_tokens});
    return {};
  }

  DType recurrent_dtype(const model::State& state) const {
    if (settings_.recurrent_dtype) return *settings_.recurrent_dtype;
    const bool is_known = state.kind != model::StateKind::kMamba2 ||
                          settings_.state_type == VllmStateType::kDeclared ||
                          (settings_.state_type == VllmStateType::kHalf && !state.is_recurrent_dtype_assumed);
    return is_known ? state.recurrent_dtype.value_or(settings_.activation_dtype) : settings_.activation_dtype;
  }

  Status unsupported(const std::string& what) const {
    return fail(ErrorCode::kUnsupported, "how vLLM lays out " + what + " in its cache is not known here",
                "layer " + std::to_string(place_), "use --engine any for the formula");
  }

  const model::ModelSpec& spec_;
  const VllmLayerSettings& settings_;
  bool keeps_states_;
  std::vector<VllmLayer> layers_;
  int place_ = 0;
};

}  // namespace

std::string_view engine_name(VllmKind kind) {
  switch (kind) {
    case VllmKind::kFull:
      return "FullAttentionSpec";
    case VllmKind::kSlidingWindow:
      return "SlidingWindowSpec";
    case VllmKind::kChunked:
      return "ChunkedLocalAttentionSpec";
    case VllmKind::kLatent:
    case VllmKind::kIndexer:
    case VllmKind::kCompressedKeys:
      return "MLAAttentionSpec";
    case VllmKind::kState:
      return "MambaSpec";
    case VllmKind::kRing:
      return "CircularBufferSpec";
    case VllmKind::kLatentWindow:
    case VllmKind::kCompressorState:
      return "SlidingWindowMLASpec";
  }
  return "";
}

Result<std::vector<VllmLayer>> vllm_layers(const model::ModelSpec& spec, const VllmLayerSettings& settings) {
  LayerList list(spec, settings);
  int place = 0;
  for (const model::Layer& layer : spec.layers) {
    PLIMSOLL_TRY_VOID(list.add(layer, place++));
  }
  if (settings.num_speculative_tokens > 0)
    for (const model::Layer& layer : spec.mtp_layers) {
      PLIMSOLL_TRY_VOID(list.add(layer, place++));
    }
  return list.take();
}

Bytes vllm_token_bytes(const std::vector<VllmLayer>& layers) {
  // Of the tokens that all entries divide: few, for the ratios are a handful of powers of two.
  Bytes sum;
  for (const VllmLayer& layer : layers)
    if (layer.kind != VllmKind::kCompressorState)
      sum += layer.token_bytes * (kHeavyRatio / layer.entry_tokens);
  return Bytes(divided_up(sum.value, kHeavyRatio));
}

}  // namespace plimsoll::memory
