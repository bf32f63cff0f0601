// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_layers.h"

#include <algorithm>
#include <string>

#include "memory/kv_cache.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kFp8DsMlaToken = 656;  // 512 fp8 values, 4 scales of f32, 64 rotary values of 16 bit
constexpr std::int64_t kPaddedLatentBytes = 256;
constexpr int kIndexerScaleGroup = 128;  // values of an index key that share one f32 scale

class LayerList {
 public:
  explicit LayerList(const VllmLayerSettings& settings) : settings_(settings) {}

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

  Status add_mixer(const model::Layer& layer, const model::Attention& attention) {
    if (attention.is_cross) return unsupported("cross attention");
    VllmLayer entry{.kind = attention.chunk_tokens    ? VllmKind::kChunked
                            : attention.window_tokens ? VllmKind::kSlidingWindow
                                                      : VllmKind::kFull,
                    .layer = place_};
    PLIMSOLL_TRY(const Bytes all, kv_layer_bytes_per_token(layer, dtype(), settings_.tensor_parallel));
    entry.token_bytes = Bytes(all.value / layer.num_mixers);
    entry.reach = attention.chunk_tokens ? *attention.chunk_tokens : attention.window_tokens.value_or(0);
    layers_.push_back(entry);
    return add_indexer(attention.indexer);
  }

  Status add_mixer(const model::Layer& layer, const model::Latent& latent) {
    if (latent.window_tokens || latent.tokens_per_entry > 1) return unsupported("compressed latent vectors");
    VllmLayer entry{.kind = VllmKind::kLatent, .layer = place_};
    PLIMSOLL_TRY(const Bytes all, kv_layer_bytes_per_token(layer, dtype(), 1));
    entry.token_bytes = settings_.cache == VllmCacheType::kFp8DsMla
                            ? Bytes(kFp8DsMlaToken)
                            : padded_latent(Bytes(all.value / layer.num_mixers));
    entry.aligns_blocks = latent.indexer.has_value() && settings_.cache == VllmCacheType::k16Bit;
    layers_.push_back(entry);
    return add_indexer(latent.indexer);
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
    const DType recurrent_dtype =
        settings_.recurrent_dtype.value_or(state.recurrent_dtype.value_or(settings_.activation_dtype));
    const auto recurrent = stored_bytes(recurrent_dtype, state.recurrent_elements / ranks);
    if (!convolved || !recurrent) return unsupported("a state of a type that has no whole bytes");
    layers_.push_back(
        {.kind = VllmKind::kState,
         .layer = place_,
         .state_bytes = *convolved + *recurrent,
         .exports_checkpoint = state.kind == model::StateKind::kMamba2 ||
                               (settings_.gdn_exports_checkpoint &&
                                (state.kind == model::StateKind::kGatedDeltaNet || state.is_copied))});
    return {};
  }

  Status unsupported(const std::string& what) const {
    return fail(ErrorCode::kUnsupported, "how vLLM lays out " + what + " in its cache is not known here",
                "layer " + std::to_string(place_), "use --engine any for the formula");
  }

  const VllmLayerSettings& settings_;
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
  }
  return "";
}

Result<std::vector<VllmLayer>> vllm_layers(const model::ModelSpec& spec, const VllmLayerSettings& settings) {
  LayerList list(settings);
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

}  // namespace plimsoll::memory
