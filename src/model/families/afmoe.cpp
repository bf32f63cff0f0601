// SPDX-License-Identifier: Apache-2.0
// AFMoE (Trinity) and FlexOlmo: mixtures with norms behind the blocks. Source: transformers' AfmoeConfig and
// FlexOlmoConfig.
#include "model/families/decoder.h"
#include "model/families/families.h"

namespace plimsoll::model {

ModelSpec afmoe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 16'384,
                                              .head_dim = 128,
                                              .hidden_size = 2048,
                                              .intermediate_size = 6144,
                                              .q_heads = 16,
                                              .vocab_size = 200'192,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  const std::int64_t window = keys.integer("sliding_window", 1, kMaxContext, 1024);
  if (!read_layer_types(keys, window, spec))
    set_window_pattern(spec, keys.integer("global_attn_every_n_layers", 1, kMaxLayers, 4), window);
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.has_qk_norm = true;
    attention.uses_rope = attention.window_tokens.has_value();
  });
  const Ffn moe = read_moe(keys, spec.layers.front().ffn, {64, 6, 1408, 2});
  const auto dense = static_cast<std::size_t>(keys.integer("num_dense_layers", 0, kMaxLayers, 1));
  for (std::size_t i = dense; i < spec.layers.size(); ++i) spec.layers[i].ffn = moe;
  for (const Trait trait : {Trait::kPostNorms, Trait::kOutputGate, Trait::kOwnScales}) add_trait(spec, trait);
  write_decoder(spec, {.moe = {.router = "mlp.router.gate"},
                       .extras =
                           [](SpecWriter& writer, const Layer& layer, int) {
                             const auto& attention = std::get<Attention>(layer.mixer);
                             writer.linear(WeightGroup::kAttention, "self_attn.gate_proj",
                                           std::int64_t{attention.q_heads} * attention.head_dim,
                                           writer.width());
                             if (layer.ffn.kind == FfnKind::kMoe)
                               writer.add(WeightGroup::kRouter, "mlp.expert_bias", {layer.ffn.experts});
                           },
                       .norms =
                           [](SpecWriter& writer, const Layer&, int) {
                             for (const char* name : {"input_layernorm", "post_attention_layernorm",
                                                      "pre_mlp_layernorm", "post_mlp_layernorm"})
                               writer.norm(name, writer.width());
                           }});
  spec.has_file_names = true;
  return spec;
}

ModelSpec flex_olmo_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(
      keys,
      {.rope_theta = 500'000.0, .context_tokens = 4096, .vocab_size = 100'352, .has_class_defaults = true});
  read_attention_bias(keys, spec);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {7, 5, dense.intermediate_size});
  moe.router.is_normalized = keys.flag("norm_topk_prob", false);
  for (Layer& layer : spec.layers) layer.ffn = moe;
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.has_qk_norm = attention.is_qk_norm_full_width = true;
  });
  write_decoder(spec, {.norms = [](SpecWriter& writer, const Layer&, int) {
                  writer.role(Role::kAttentionPostNorm, {writer.width()});
                  writer.role(Role::kFfnPostNorm, {writer.width()});
                }});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
