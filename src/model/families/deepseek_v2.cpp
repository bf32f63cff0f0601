// SPDX-License-Identifier: Apache-2.0
// DeepSeek MoE (the first, with plain attention) and DeepSeek V2 (latent attention without score bias).
// Source: transformers' DeepseekV2Config; for the first its published modeling code.
#include <utility>

#include "model/families/deepseek.h"
#include "model/families/families.h"

namespace plimsoll::model {

ModelSpec deepseek_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {});
  read_attention_bias(keys, spec);
  set_moe_layers(keys, read_moe(keys, spec.layers.front().ffn), spec);
  add_trait(spec, Trait::kUnknown);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec deepseek_v2_from_config(KeyReader& keys) {
  ModelSpec spec =
      read_config_decoder(keys, {.head_dim = 64, .vocab_size = 102'400, .has_class_defaults = true});
  const Latent latent = read_latent(keys, std::get<Attention>(spec.layers.front().mixer).q_heads);
  const bool has_bias = keys.flag("mlp_bias", false);
  for (Layer& layer : spec.layers) {
    layer.mixer = latent;
    layer.ffn.has_bias = has_bias;
  }
  spec.rope.rotary_dim = latent.qk_rope_head_dim;
  // The class names no number of experts per token; both published sizes take six.
  set_moe_layers(keys, read_moe(keys, spec.layers.front().ffn, {64, 6, 1407, 2}), spec);
  add_trait(spec, Trait::kUnknown);
  write_decoder(spec, {.latent = read_latent_bias(keys)});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
