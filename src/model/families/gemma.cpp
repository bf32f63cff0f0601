// SPDX-License-Identifier: Apache-2.0
// Gemma 1, 2 and 3 (text) and VaultGemma: norms that multiply by one plus their weight, an embedding scaled
// by the root of the width, from 2 on windows on most layers and norms behind the blocks. Source:
// transformers' configuration and modeling files of these names.
#include <algorithm>
#include <cmath>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

// `reads_one_key`: hidden_activation alone counts.
ModelSpec read_gemma(KeyReader& keys, const DecoderDefaults& defaults, bool reads_one_key = true) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  spec.norm_adds_one = true;
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  // The first configs say "gelu" and mean its tanh form, as every engine computes it.
  const bool is_first = keys.text("hidden_act", "gelu") == "gelu";
  if (!keys.has("hidden_activation") && (is_first || reads_one_key))
    for (Layer& layer : spec.layers) layer.ffn.activation = Activation::kGeluTanh;
  read_attention_bias(keys, spec);
  return spec;
}

DecoderDefaults gemma2_defaults() {
  return {.context_tokens = 8192,
          .ties_embeddings = true,
          .head_dim = 256,
          .kv_heads = 4,
          .hidden_size = 2304,
          .intermediate_size = 9216,
          .num_layers = 26,
          .q_heads = 8,
          .vocab_size = 256'000,
          .has_class_defaults = true};
}

void read_query_scale(KeyReader& keys, ModelSpec& spec) {
  const double scale = 1.0 / std::sqrt(keys.positive("query_pre_attn_scalar", 256.0));
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.scale = scale; });
}

// A null switches a cap off; a config that is silent gets the class's own.
double read_cap(KeyReader& keys, std::string_view key, double otherwise) {
  return keys.has(key) ? keys.positive(key, otherwise) : keys.contains(key) ? 0.0 : otherwise;
}

void read_soft_caps(KeyReader& keys, double of_scores, double of_logits, ModelSpec& spec) {
  const double cap = read_cap(keys, "attn_logit_softcapping", of_scores);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.soft_cap = cap; });
  spec.logits_soft_cap = read_cap(keys, "final_logit_softcapping", of_logits);
}

ModelSpec finish(ModelSpec spec, const DecoderStyle& style) {
  write_decoder(spec, style);
  spec.has_file_names = true;
  return spec;
}

}  // namespace

ModelSpec gemma_from_config(KeyReader& keys) {
  ModelSpec spec = read_gemma(keys,
                              {.context_tokens = 8192,
                               .ties_embeddings = true,
                               .head_dim = 256,
                               .kv_heads = 16,
                               .hidden_size = 3072,
                               .intermediate_size = 24'576,
                               .num_layers = 28,
                               .q_heads = 16,
                               .vocab_size = 256'000,
                               .has_class_defaults = true},
                              false);
  return finish(std::move(spec), {});
}

ModelSpec gemma2_from_config(KeyReader& keys) {
  ModelSpec spec = read_gemma(keys, gemma2_defaults());
  read_query_scale(keys, spec);
  read_soft_caps(keys, 50.0, 30.0, spec);
  read_windows(keys, read_window(keys, 4096), 2, spec);
  return finish(std::move(spec), {.has_post_norms = true});
}

ModelSpec vaultgemma_from_config(KeyReader& keys) {
  ModelSpec spec = read_gemma(keys, gemma2_defaults());
  read_query_scale(keys, spec);
  read_soft_caps(keys, 0.0, 0.0, spec);
  add_trait(spec, Trait::kUnknown);
  read_windows(keys, read_window(keys, 4096), 2, spec);
  return finish(std::move(spec), {.norms = [](SpecWriter& writer, const Layer&, int) {
                  writer.norm("input_layernorm", writer.width());
                  writer.norm("pre_feedforward_layernorm", writer.width());
                }});
}

ModelSpec gemma3_from_config(KeyReader& keys) {
  DecoderDefaults defaults = gemma2_defaults();
  defaults.context_tokens = 131'072;
  defaults.rope_theta = 1e6;
  defaults.vocab_size = 262'208;
  ModelSpec spec = read_gemma(keys, defaults);
  if (!spec.window_rope) {
    spec.window_rope.emplace();  // 10,000 is the class's default, too
    spec.window_rope->rotary_dim = spec.rope.rotary_dim;
  }
  // The stated length counts the scaling of the full layers already.
  spec.extended_context_tokens = std::min(spec.extended_context_tokens,
                                          keys.integer("max_position_embeddings", 1, kMaxContext, 131'072));
  read_query_scale(keys, spec);
  spec.logits_soft_cap =
      read_cap(keys, "final_logit_softcapping", 0.0);  // scores have none, whatever is stated
  set_qk_norm(spec);
  auto window = read_window(keys, 4096);
  if (keys["use_bidirectional_attention"].as_bool().value_or(false)) {
    add_trait(spec, Trait::kOwnAttention);  // later positions are seen, too
    if (window) window = *window / 2 + 1;
  }
  read_windows(keys, window, keys.integer("sliding_window_pattern", 1, kMaxLayers, 6), spec);
  return finish(std::move(spec), {.has_post_norms = true});
}

ModelSpec gemma3_from_gguf(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec = read_gguf_decoder(keys, artifact);  // norms are stored with the one added
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  for (Layer& layer : spec.layers) layer.ffn.activation = Activation::kGeluTanh;
  set_qk_norm(spec);
  // The file does not keep query_pre_attn_scalar: of the largest model alone it is the width over the heads.
  constexpr std::size_t kLayersOfLargest = 62;
  if (spec.layers.size() == kLayersOfLargest)
    for_each_attention(spec, [&](Attention& attention, std::size_t) {
      attention.scale = 1.0 / std::sqrt(static_cast<double>(spec.hidden_size) / attention.q_heads);
    });
  spec.window_rope.emplace();
  spec.window_rope->rotary_dim = spec.rope.rotary_dim;
  spec.window_rope->theta = keys.positive("rope.freq_base_swa", 10'000.0);
  spec.logits_soft_cap = read_cap(keys, "final_logit_softcapping", 0.0);
  if (keys.has("attention.sliding_window"))
    set_window_pattern(spec, keys.integer("attention.sliding_window_pattern", 1, kMaxLayers, 6),
                       keys.integer("attention.sliding_window", 1, kMaxContext));
  return finish(std::move(spec), {.has_post_norms = true});
}

}  // namespace plimsoll::model
