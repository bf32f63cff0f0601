// SPDX-License-Identifier: Apache-2.0
// LongCat-Flash: two latent attentions and two dense feed-forwards in a layer, beside one mixture in which
// some experts do nothing. Source: transformers' LongcatFlashConfig.
#include <string>

#include "model/families/deepseek.h"
#include "model/families/families.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

void write_experts(SpecWriter& writer, const Ffn& ffn, int idle) {
  const std::int64_t width = writer.width(), inner = ffn.expert_intermediate_size;
  const std::int64_t scored = std::int64_t{ffn.experts} + idle;
  writer.add(Group::kRouter, "mlp.router.classifier.weight", {scored, width});
  writer.add(Group::kRouter, "mlp.router.e_score_correction_bias", {scored}).is_parameter = false;
  writer.linears(Group::kExperts, "mlp.experts.{}.gate_proj", inner, width, ffn.experts);
  writer.linears(Group::kExperts, "mlp.experts.{}.up_proj", inner, width, ffn.experts);
  writer.linears(Group::kExperts, "mlp.experts.{}.down_proj", width, inner, ffn.experts);
  if (idle == 0) return;
  // transformers' model counts gate and up of the idle experts, too; files don't hold them and no token uses
  // them.
  Weight& weight = writer.add(Group::kExperts, "", {2 * inner, width});
  weight.copies = idle;
  weight.is_optional = true;
  weight.hf_name.clear();
}

void write_layer(SpecWriter& writer, const Layer& layer, int idle, const LatentStyle& style) {
  for (int i = 0; i < layer.num_mixers; ++i) {
    const std::string at = std::to_string(i);
    writer.norm("input_layernorm." + at, writer.width());
    const std::string prefix = "self_attn." + at + ".";
    write_latent(
        writer, std::get<Latent>(layer.mixer),
        {.has_q_bias = style.has_q_bias, .has_output_bias = style.has_output_bias, .prefix = prefix});
    writer.norm("post_attention_layernorm." + at, writer.width());
    write_gated(writer, Group::kFfn, "mlps." + at + ".", layer.ffn.intermediate_size);
  }
  write_experts(writer, layer.ffn, idle);
}

}  // namespace

ModelSpec longcat_flash_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 10'000'000.0,
                                              .context_tokens = 131'072,
                                              .head_dim = 64,
                                              .hidden_size = 6144,
                                              .intermediate_size = 12'288,
                                              .num_layers = 28,
                                              .q_heads = 64,
                                              .vocab_size = 131'072,
                                              .has_class_defaults = true});
  // num_hidden_layers counts attentions where both are given.
  if (keys.has("num_layers"))
    spec.layers.resize(static_cast<std::size_t>(keys.count("num_layers", kMaxLayers)),
                       Layer(spec.layers.front()));
  const Latent latent = read_latent(keys, spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn,
                     {512, 12, keys.count("expert_ffn_hidden_size", kMaxWidth, 2048)});
  const int idle = static_cast<int>(keys.integer("zero_expert_num", 0, kMaxExperts, 256));
  for (Layer& layer : spec.layers) layer = {.mixer = latent, .ffn = moe, .num_mixers = 2};
  spec.rope.rotary_dim = latent.qk_rope_head_dim;
  add_trait(spec, Trait::kOwnFfn);
  add_trait(spec, Trait::kUnknown);

  const LatentStyle style = read_latent_bias(keys);
  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    enter_layer(writer, i);
    write_layer(writer, layers[static_cast<std::size_t>(i)], idle, style);
  }
  write_head(writer);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
