// SPDX-License-Identifier: Apache-2.0
// Mixtures whose files stack the experts' matrices as [experts, in, out]: GPT-OSS, Llama 4. Source:
// transformers' configuration and modeling files of these names.
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

// What the class takes where the config has no scaling, or null. The lengths stay as stated.
void assume_yarn(KeyReader& keys, RopeSpec& rope) {
  if (keys["rope_parameters"].is_object() || keys["rope_scaling"].is_object()) return;
  rope.kind = RopeKind::kYarn;
  rope.factor = 32.0;
  rope.original_context_tokens = 4096;
  rope.truncate = false;
}

}  // namespace

// Gates and ups alternate column by column; a head's sink is one more logit.
ModelSpec gpt_oss_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 150'000,
                                              .context_tokens = 131'072,
                                              .head_dim = 64,
                                              .kv_heads = 8,
                                              .hidden_size = 2880,
                                              .intermediate_size = 2880,
                                              .num_layers = 36,
                                              .q_heads = 64,
                                              .vocab_size = 201'088,
                                              .has_class_defaults = true});
  spec.rope.is_kept_in_32_bit = true;
  assume_yarn(keys, spec.rope);
  spec.alternates_gate_up = true;
  read_attention_bias(keys, spec, true);
  read_windows(keys, read_window(keys, 128), 2, spec);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_sinks = true; });
  set_plain_experts(keys, 128, 4, spec);
  for (Layer& layer : spec.layers) {
    layer.ffn.activation = Activation::kClampedSwiglu;  // whatever hidden_act says
    layer.ffn.swiglu_alpha = keys.positive("swiglu_alpha", 1.702);
    layer.ffn.swiglu_limit = keys.positive("swiglu_limit", 7.0);
    layer.ffn.router.is_normalized = true;
  }
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    const auto& attention = std::get<Attention>(layer.mixer);
    const std::int64_t width = writer.width(), inner = layer.ffn.expert_intermediate_size;
    const int experts = layer.ffn.experts;
    write_two_norms(writer);
    write_attention(writer, attention);
    writer.role(Role::kAttentionSinks, {attention.q_heads});
    writer.role_as(Role::kRouter, "mlp.router.weight", {experts, width});
    writer.role_as(Role::kRouterBias, "mlp.router.bias", {experts});
    write_stacked_as(writer, Role::kExpertGateUp, "mlp.experts.gate_up_proj", {width, 2 * inner}, experts,
                     true);
    write_stacked_as(writer, Role::kExpertGateUpBias, "mlp.experts.gate_up_proj_bias", {2 * inner}, experts);
    write_stacked_as(writer, Role::kExpertDown, "mlp.experts.down_proj", {inner, width}, experts, true);
    write_stacked_as(writer, Role::kExpertDownBias, "mlp.experts.down_proj_bias", {width}, experts);
  });
  spec.has_file_names = true;
  return spec;
}

namespace {

// Layers that turn have chunks and norms behind the rope; the others weigh queries by their position.
void read_llama4_attention(KeyReader& keys, ModelSpec& spec) {
  const std::int64_t step = keys.integer("no_rope_layer_interval", 1, kMaxLayers, 4);
  const bool is_list = keys["no_rope_layers"].is_array() && keys["no_rope_layers"].size() > 0;
  const auto rope =
      is_list ? keys.per_layer("no_rope_layers", spec.layers.size(), 0, 1) : std::vector<std::int64_t>();
  std::optional<std::int64_t> chunk;
  if (keys.has("attention_chunk_size") || !keys.contains("attention_chunk_size"))
    chunk = keys.integer("attention_chunk_size", 1, kMaxContext, 8192);
  const bool has_norm = keys.flag("use_qk_norm", true);
  // Published configs also have a number for it.
  const Json& tuning = keys["attn_temperature_tuning"];
  const bool is_tuned =
      tuning.is_integer() ? *tuning.as_integer() != 0 : keys.flag("attn_temperature_tuning", true);
  const double scale = keys.positive("attn_scale", 0.1);
  const std::int64_t tokens = keys.integer("floor_scale", 1, kMaxContext, 8192);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.uses_rope = is_list ? rope[i] != 0 : (static_cast<std::int64_t>(i) + 1) % step != 0;
    attention.has_unit_norm_after_rope = has_norm && attention.uses_rope;
    if (attention.uses_rope) attention.chunk_tokens = chunk;
    if (attention.uses_rope || !is_tuned) return;
    attention.temperature_scale = scale;
    attention.temperature_tokens = tokens;
  });
  read_layer_types(keys, chunk, spec);
}

}  // namespace

ModelSpec llama4_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 500'000,
                                              .context_tokens = 131'072,
                                              .head_dim = 128,
                                              .kv_heads = 8,
                                              .hidden_size = 5120,
                                              .intermediate_size = 8192,
                                              .num_layers = 48,
                                              .q_heads = 40,
                                              .vocab_size = 202'048,
                                              .has_class_defaults = true});
  spec.rope.interleaved = true;
  read_attention_bias(keys, spec);
  read_llama4_attention(keys, spec);

  Ffn moe = spec.layers.front().ffn;
  moe.kind = FfnKind::kMoe;
  moe.experts = keys.count("num_experts", kMaxExperts, 16);
  moe.experts_per_token = keys.count("num_experts_per_tok", kMaxExperts, 1);
  moe.expert_intermediate_size = moe.shared_intermediate_size = moe.intermediate_size;
  moe.shared_experts = 1;
  moe.router.scores = Router::Scores::kSigmoid;
  moe.router.scales_input = true;
  const int dense = keys.count("intermediate_size_mlp", kMaxWidth, 16'384);
  for (Layer& layer : spec.layers) layer.ffn.intermediate_size = dense;
  set_moe_layers(keys, moe, spec);
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_attention(writer, std::get<Attention>(layer.mixer));
    if (layer.ffn.kind == FfnKind::kDense)
      return write_gated_as(writer, "feed_forward.", layer.ffn.intermediate_size);
    const std::int64_t width = writer.width(), inner = layer.ffn.expert_intermediate_size;
    const int experts = layer.ffn.experts;
    writer.role_as(Role::kRouter, "feed_forward.router.weight", {experts, width}).is_linear = true;
    write_stacked_as(writer, Role::kExpertGateUp, "feed_forward.experts.gate_up_proj", {width, 2 * inner},
                     experts, true);
    write_stacked_as(writer, Role::kExpertDown, "feed_forward.experts.down_proj", {inner, width}, experts,
                     true);
    write_shared_as(writer, "feed_forward.shared_expert.", inner);
  });
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
