// SPDX-License-Identifier: Apache-2.0
#include "memory/llama_cpp_compute.h"

#include <algorithm>

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kFloat = 4;  // activations are in 32 bit whatever the weights' type

// How far the engine's own placing strays from what is counted. Source: docs/formulas/llama_cpp.md,
// section 4.
constexpr std::int64_t kBandPercent = 10;
constexpr std::int64_t kScoresBandPercent = 15;  // without flash attention
constexpr std::int64_t kStateBandPercent = 60;   // of states whose steps were not looked at
constexpr Bytes kBandFloor(kMiB);

/// Floats of one token that live together in the widest moment of a step. Three rows of the residual's width
/// (input, norm, sum) always do, and what earlier moments leave unfilled.
class Moments {
 public:
  Moments(const model::ModelSpec& spec, const LlamaCppContext& context, const LlamaCppCache& cache)
      : spec_(spec), context_(context), cache_(cache), hidden_(spec.hidden_size), rows_(3 * hidden_) {
    for (const model::Layer& layer : spec.layers)
      if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
        queries_ = std::max(queries_, std::int64_t{attention->q_heads} * attention->head_dim);
      else if (const auto* latent = std::get_if<model::Latent>(&layer.mixer))
        queries_ = std::max(queries_, latent->q_heads * head_width(*latent));
    left_ = queries_ > 0 ? std::min(queries_, hidden_) : hidden_;
  }

  std::int64_t widest() const {
    std::int64_t widest = 0;
    for (std::size_t i = 0; i < spec_.layers.size(); ++i) {
      const model::Layer& layer = spec_.layers[i];
      widest = std::max({widest, ffn(layer.ffn),
                         std::visit([&](const auto& mixer) { return floats_of(mixer, i); }, layer.mixer)});
      for (const model::State& state : layer.side_states) widest = std::max(widest, floats_of(state, i));
    }
    return widest;
  }

  /// States other than Mamba 2's are counted roughly.
  bool is_rough() const {
    const auto is_unknown = [](const model::State& state) { return state.kind != model::StateKind::kMamba2; };
    return std::any_of(spec_.layers.begin(), spec_.layers.end(), [&](const model::Layer& layer) {
      const auto* state = std::get_if<model::State>(&layer.mixer);
      return (state && is_unknown(*state)) ||
             std::any_of(layer.side_states.begin(), layer.side_states.end(), is_unknown);
    });
  }

 private:
  static std::int64_t head_width(const model::Latent& latent) {
    return std::int64_t{latent.qk_nope_head_dim} + latent.qk_rope_head_dim;
  }

  // Gate, up and their product; without a gate the activation is computed in place.
  static std::int64_t inner_rows(bool is_gated) { return is_gated ? 3 : 1; }

  std::int64_t ffn(const model::Ffn& ffn) const {
    const std::int64_t rows = inner_rows(ffn.is_gated);
    if (ffn.kind == model::FfnKind::kNone) return 0;
    if (ffn.kind == model::FfnKind::kDense) return rows_ + left_ + rows * ffn.intermediate_size;
    const std::int64_t chosen = ffn.experts_per_token;
    const std::int64_t inner = chosen * ffn.expert_intermediate_size, down = chosen * hidden_;
    // What comes out takes the place of gate and up where it is no larger than they were.
    const bool has_place = down <= (rows - 1) * inner;
    const std::int64_t experts =
        has_place ? rows_ + left_ + rows * inner : rows_ + queries_ + rows * inner + down;
    const std::int64_t shared = rows_ + left_ + hidden_ + rows * ffn.shared_intermediate_size;
    return std::max(experts, shared);
  }

  std::int64_t scores(std::int64_t heads, std::size_t layer) const {
    if (context_.has_flash_attention) return 0;
    return heads * (cache_.layers[layer].is_windowed ? cache_.window_tokens : cache_.sequence_tokens);
  }

  std::int64_t attention(std::int64_t heads, std::int64_t kv_heads, std::int64_t key, std::int64_t value,
                         std::size_t layer) const {
    return rows_ + 2 * heads * std::max(key, value) + kv_heads * (key + value) + scores(heads, layer);
  }

  std::int64_t floats_of(const model::Attention& mixer, std::size_t layer) const {
    return attention(mixer.q_heads, mixer.kv_heads, mixer.head_dim, mixer.value_dim(), layer);
  }

  // Queries are taken into the latent's space and joined with their rotary part: three copies of a kind.
  std::int64_t floats_of(const model::Latent& mixer, std::size_t layer) const {
    if (!context_.absorbs_latents)
      return attention(mixer.q_heads, mixer.q_heads, head_width(mixer), mixer.v_head_dim, layer);
    const std::int64_t head = head_width(mixer) + mixer.qk_rope_head_dim + mixer.kv_lora_rank + mixer.width();
    return rows_ + 2 * hidden_ + mixer.q_heads * head + scores(mixer.q_heads, layer);
  }

  // The projection, the convolution's input and output, what the scan gives.
  std::int64_t floats_of(const model::State& mixer, std::size_t) const {
    const std::int64_t channels =
        mixer.kernel > 1 ? mixer.convolution_elements / (mixer.kernel - 1) : 2 * hidden_;
    const std::int64_t inner = channels - mixer.groups * mixer.group_channels;
    return rows_ + (inner + channels + mixer.heads) + 2 * channels + inner;
  }

  std::int64_t floats_of(const model::NoMixer&, std::size_t) const { return 0; }
  std::int64_t floats_of(const model::TwoSided&, std::size_t) const { return 0; }

  const model::ModelSpec& spec_;
  const LlamaCppContext& context_;
  const LlamaCppCache& cache_;
  std::int64_t hidden_, rows_;
  std::int64_t queries_ = 0;  // of the widest attention
  std::int64_t left_ = 0;     // a place of queries' width that feed-forward leaves unfilled
};

}  // namespace

Bytes LlamaCppCompute::host(bool has_layers) const {
  // Vectors that come from outside have a place, too, which nobody fills.
  const Bytes handed = kept * copies + embedded * (copies + 1);
  return has_layers ? std::max(handed, kept + std::max(moment, logits)) : handed;
}

Bytes LlamaCppCompute::gpu(bool is_first) const {
  if (copies == 1) return kept + std::max(moment - embedded, logits);
  // A GPU behind another is handed two tensors of a token's width, none of which it may write over.
  const Bytes handed = embedded * (is_first ? copies - 1 : 2 * copies - 2);
  return kept * copies + std::max(moment + handed, logits);
}

LlamaCppCompute llama_cpp_compute(const model::ModelSpec& spec, const LlamaCppContext& context,
                                  const LlamaCppCache& cache, int num_outputs, int copies) {
  const std::int64_t tokens = std::min(cache.context_tokens, cache.micro_batch_tokens);
  const std::int64_t mask_value = context.has_flash_attention ? 2 : kFloat;
  const auto has = [&](bool is_windowed) {
    return std::any_of(cache.layers.begin(), cache.layers.end(), [&](const LlamaCppLayer& layer) {
      return layer.is_windowed == is_windowed && layer.keys > Bytes(0);
    });
  };
  std::int64_t masks = 0;
  if (has(false)) masks += cache.sequence_tokens;
  if (has(true)) masks += cache.window_tokens;
  // Ids and position in 32 bit, places of keys and values in 64.
  const std::int64_t indices = 4 + 4 + 16;
  LlamaCppCompute compute;
  compute.copies = copies;
  compute.kept = Bytes(tokens * (masks * mask_value + indices));
  compute.embedded = Bytes(tokens * spec.hidden_size * kFloat);
  const Moments moments(spec, context, cache);
  Bytes state;
  for (const LlamaCppLayer& layer : cache.layers) state = std::max(state, layer.state);
  compute.moment = std::max(compute.embedded, Bytes(moments.widest() * tokens * kFloat) + state);
  compute.logits = Bytes((spec.vocab_size + spec.hidden_size) * num_outputs * kFloat);
  const bool is_rough = moments.is_rough() || (copies > 1 && state > Bytes(0));
  const std::int64_t percent = is_rough                      ? kStateBandPercent
                               : context.has_flash_attention ? kBandPercent
                                                             : kScoresBandPercent;
  compute.band = kBandFloor + Bytes(compute.gpu(false).value / 100 * percent);
  return compute;
}

}  // namespace plimsoll::memory
