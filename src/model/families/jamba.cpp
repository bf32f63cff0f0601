// SPDX-License-Identifier: Apache-2.0
// Jamba: Mamba 1 layers with attention in every eighth, mixtures of experts in every second. Source:
// transformers' JambaConfig.
#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {

ModelSpec jamba_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 262'144,
                                              .kv_heads = 8,
                                              .intermediate_size = 14'336,
                                              .vocab_size = 65'536,
                                              .has_class_defaults = true});
  spec.rope.rotary_dim = 0;  // order comes from the states
  Mamba mamba{.states = keys.integer("mamba_d_state", 1, kMaxWidth, 16),
              .kernel = keys.integer("mamba_d_conv", 1, kMaxKernel, 4),
              .time_rank = read_time_rank(keys, "mamba_dt_rank", spec.hidden_size),
              .has_convolution_bias = keys.flag("mamba_conv_bias", true),
              .has_selection_norms = true};
  mamba.has_bias = mamba.has_output_bias = keys.flag("mamba_proj_bias", false);
  mamba.inner = keys.integer("mamba_expand", 1, 64, 2) * spec.hidden_size;

  const Ffn moe = read_moe(keys, spec.layers.front().ffn, {16, 2, spec.layers.front().ffn.intermediate_size});
  const auto number = [&](std::string_view key, std::int64_t least, std::int64_t otherwise) {
    return static_cast<std::size_t>(keys.integer(key, least, kMaxLayers, otherwise));
  };
  const std::size_t attention_period = number("attn_layer_period", 1, 8);
  const std::size_t attention_offset = number("attn_layer_offset", 0, 4);
  const std::size_t expert_period = number("expert_layer_period", 1, 2);
  const std::size_t expert_offset = number("expert_layer_offset", 0, 1);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (i % attention_period != attention_offset) spec.layers[i].mixer = state_of(mamba);
    if (i % expert_period == expert_offset && moe.experts > 1) spec.layers[i].ffn = moe;
  }
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.uses_rope = false; });
  write_decoder(spec,
                {.moe = {.router = "mlp.router"}, .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                   if (std::holds_alternative<State>(layer.mixer)) write_mamba(writer, mamba, "mamba.");
                 }});
  rename_weights(spec, {{".mlp.", ".feed_forward."},
                        {".post_attention_layernorm.", ".pre_ff_layernorm."},
                        {"model.norm.", "model.final_layernorm."}});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
