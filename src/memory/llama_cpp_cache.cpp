// SPDX-License-Identifier: Apache-2.0
#include "memory/llama_cpp_cache.h"

#include <algorithm>
#include <string>

#include "memory/kv_cache.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kCellStep = 256;           // cells come in whole numbers of these
constexpr int kMostSeqs = 256;                    // LLAMA_MAX_SEQ
constexpr std::int64_t kMostContext = 1LL << 31;  // its counters have 32 bits

std::int64_t rounded_up(std::int64_t amount, std::int64_t step) {
  return (amount + step - 1) / step * step;
}

tl::unexpected<Error> unsupported(const std::string& what, std::size_t layer) {
  return fail(ErrorCode::kUnsupported, "how llama.cpp keeps " + what + " is not known here",
              "layer " + std::to_string(layer), "use --engine any for the formula");
}

class CacheSizer {
 public:
  CacheSizer(const model::ModelSpec& spec, const LlamaCppContext& context) : spec_(spec), context_(context) {}

  Result<LlamaCppCache> size() {
    PLIMSOLL_TRY_VOID(check());
    count_cells();
    has_states_ = std::any_of(spec_.layers.begin(), spec_.layers.end(), [](const model::Layer& layer) {
      return std::holds_alternative<model::State>(layer.mixer) || !layer.side_states.empty();
    });
    for (const model::Layer& layer : spec_.layers) {
      PLIMSOLL_TRY(const LlamaCppLayer sized, size_layer(layer));
      cache_.layers.push_back(sized);
    }
    if (!context_.has_flash_attention) widen_values();
    Bytes total;
    for (const LlamaCppLayer& layer : cache_.layers)
      for (const Bytes part : {layer.keys, layer.values, layer.index_keys, layer.convolution, layer.state}) {
        const auto sum = checked_sum(total.value, part.value);
        if (!sum) return too_large();
        total = Bytes(*sum);
      }
    return std::move(cache_);
  }

 private:
  Status check() const {
    const auto in = [](std::int64_t value, std::int64_t most) { return value >= 1 && value <= most; };
    if (!in(context_.context_tokens, kMostContext) || !in(context_.num_seqs, kMostSeqs) ||
        !in(context_.batch_tokens, kMostContext) || !in(context_.micro_batch_tokens, kMostContext))
      return fail(ErrorCode::kUsage, "llama.cpp takes 1 to 256 sequences, and lengths from 1 to 2147483648",
                  "--ctx-size, --parallel, --batch-size, --ubatch-size", "give numbers in these bounds");
    if (!context_.has_flash_attention && is_block_quantized(context_.value_dtype))
      return fail(ErrorCode::kUsage, "quantized V cache was requested, but this requires Flash Attention",
                  "--cache-type-v", "leave --flash-attn at auto, or keep values in f16");
    return {};
  }

  void count_cells() {
    cache_.num_streams = context_.is_unified ? 1 : context_.num_seqs;
    cache_.batch_tokens = std::min(context_.context_tokens, context_.batch_tokens);
    cache_.micro_batch_tokens = std::min(cache_.batch_tokens, context_.micro_batch_tokens);
    cache_.sequence_tokens =
        rounded_up(rounded_up(context_.context_tokens, kCellStep) / cache_.num_streams, kCellStep);
    cache_.context_tokens = cache_.sequence_tokens * cache_.num_streams;
  }

  std::int64_t cells_of(std::int64_t window) const {
    if (window == 0 || context_.keeps_whole_windows) return cache_.sequence_tokens;
    const std::int64_t kept = window * (context_.is_unified ? context_.num_seqs : 1);
    return rounded_up(std::min(cache_.sequence_tokens, kept + cache_.micro_batch_tokens), kCellStep);
  }

  static tl::unexpected<Error> too_large() {
    return fail(ErrorCode::kMalformed, "the cache of this context does not fit 63 bits", "config.json",
                "check the sizes in the config, or ask for a shorter context");
  }

  Result<Bytes> over_cells(Bytes one, std::int64_t cells) const {
    const auto all = checked_product(one.value, cells * cache_.num_streams);
    if (!all) return too_large();
    return Bytes(*all);
  }

  // Keys and values of each head, where the engine does not absorb the projections into the queries.
  static model::Layer expanded(const model::Layer& layer, const model::Latent& latent) {
    model::Layer plain = layer;
    plain.mixer = model::Attention{.q_heads = latent.q_heads,
                                   .kv_heads = latent.q_heads,
                                   .head_dim = latent.qk_nope_head_dim + latent.qk_rope_head_dim,
                                   .value_head_dim = latent.v_head_dim};
    return plain;
  }

  Result<LlamaCppLayer> size_layer(const model::Layer& layer) {
    const std::size_t place = cache_.layers.size();
    LlamaCppLayer sized;
    PLIMSOLL_TRY(const std::int64_t window, window_of(layer, place));
    sized.is_windowed = window > 0;
    const std::int64_t cells = cells_of(window);
    if (sized.is_windowed) cache_.window_tokens = std::max(cache_.window_tokens, cells);
    const auto* latent = std::get_if<model::Latent>(&layer.mixer);
    PLIMSOLL_TRY(
        const KeyValueBytes token,
        kv_layer_parts_per_token(latent && !context_.absorbs_latents ? expanded(layer, *latent) : layer,
                                 context_.key_dtype, context_.value_dtype));
    PLIMSOLL_TRY(sized.keys, over_cells(token.keys, cells));
    PLIMSOLL_TRY(sized.values, over_cells(token.values, cells));
    PLIMSOLL_TRY_VOID(add_index_keys(layer, place, sized));
    if (const auto* state = std::get_if<model::State>(&layer.mixer)) {
      PLIMSOLL_TRY_VOID(add_state(*state, place, sized));
    }
    for (const model::State& state : layer.side_states) {
      PLIMSOLL_TRY_VOID(add_state(state, place, sized));
    }
    return sized;
  }

  Result<std::int64_t> window_of(const model::Layer& layer, std::size_t place) const {
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer)) {
      if (attention->is_cross) return unsupported("keys of cross attention", place);
      if (!context_.uses_windows) return 0;
      return attention->chunk_tokens ? *attention->chunk_tokens : attention->window_tokens.value_or(0);
    }
    const auto* latent = std::get_if<model::Latent>(&layer.mixer);
    if (latent && (latent->window_tokens || latent->tokens_per_entry > 1))
      return unsupported("compressed latent vectors", place);
    return 0;
  }

  // One key head; latent attention and hybrids keep no values beside it, others a value nobody reads.
  Status add_index_keys(const model::Layer& layer, std::size_t place, LlamaCppLayer& sized) const {
    const auto* attention = std::get_if<model::Attention>(&layer.mixer);
    const auto* latent = std::get_if<model::Latent>(&layer.mixer);
    const auto& indexer = attention ? attention->indexer : latent ? latent->indexer : std::nullopt;
    if (!indexer || indexer->heads == 0 || layer.kv_source) return {};
    if (indexer->tokens_per_key > 1) return unsupported("compressed index keys", place);
    const bool has_values = attention && !has_states_;
    model::Layer keys;
    keys.mixer = model::Attention{.q_heads = 1,
                                  .kv_heads = 1,
                                  .head_dim = indexer->head_dim,
                                  .value_head_dim = has_values ? attention->value_dim() : indexer->head_dim};
    PLIMSOLL_TRY(const KeyValueBytes token,
                 kv_layer_parts_per_token(keys, context_.key_dtype, context_.value_dtype));
    PLIMSOLL_TRY(sized.index_keys,
                 over_cells(has_values ? token.keys + token.values : token.keys, cache_.sequence_tokens));
    return {};
  }

  // In 32 bit, a row for each sequence.
  Status add_state(const model::State& state, std::size_t place, LlamaCppLayer& sized) const {
    if (state.kind == model::StateKind::kIndexRing) return unsupported("rings of index keys", place);
    const auto convolution = stored_bytes(DType::kF32, state.convolution_elements);
    const auto recurrent = stored_bytes(DType::kF32, state.recurrent_elements);
    const auto all_convolution =
        convolution ? checked_product(convolution->value, context_.num_seqs) : std::nullopt;
    const auto all_recurrent =
        recurrent ? checked_product(recurrent->value, context_.num_seqs) : std::nullopt;
    if (!all_convolution || !all_recurrent) return too_large();
    sized.convolution += Bytes(*all_convolution);
    sized.state += Bytes(*all_recurrent);
    return {};
  }

  // Transposed values of all layers have the rows of the widest.
  void widen_values() {
    Bytes widest;
    const auto cells = [&](const LlamaCppLayer& layer) {
      return layer.is_windowed ? cache_.window_tokens : cache_.sequence_tokens;
    };
    for (const LlamaCppLayer& layer : cache_.layers)
      widest = std::max(widest, Bytes(layer.values.value / cells(layer)));
    for (LlamaCppLayer& layer : cache_.layers)
      if (layer.values > Bytes(0)) layer.values = widest * cells(layer);
  }

  const model::ModelSpec& spec_;
  const LlamaCppContext& context_;
  LlamaCppCache cache_;
  bool has_states_ = false;
};

template <class Part>
Bytes sum_of(const std::vector<LlamaCppLayer>& layers, Part part) {
  Bytes total;
  for (const LlamaCppLayer& layer : layers) total += part(layer);
  return total;
}

}  // namespace

Bytes LlamaCppCache::keys(bool is_windowed) const {
  return sum_of(layers,
                [&](const auto& layer) { return layer.is_windowed == is_windowed ? layer.keys : Bytes(0); });
}

Bytes LlamaCppCache::values(bool is_windowed) const {
  return sum_of(
      layers, [&](const auto& layer) { return layer.is_windowed == is_windowed ? layer.values : Bytes(0); });
}

Bytes LlamaCppCache::index_keys() const {
  return sum_of(layers, [](const auto& layer) { return layer.index_keys; });
}

Bytes LlamaCppCache::convolutions() const {
  return sum_of(layers, [](const auto& layer) { return layer.convolution; });
}

Bytes LlamaCppCache::states() const {
  return sum_of(layers, [](const auto& layer) { return layer.state; });
}

Bytes LlamaCppCache::total() const {
  return keys(false) + keys(true) + values(false) + values(true) + index_keys() + convolutions() + states();
}

Result<LlamaCppCache> llama_cpp_cache(const model::ModelSpec& spec, const LlamaCppContext& context) {
  return CacheSizer(spec, context).size();
}

Bytes llama_cpp_output(const model::ModelSpec& spec, int num_seqs) {
  return Bytes(spec.vocab_size * num_seqs * 4);
}

}  // namespace plimsoll::memory
