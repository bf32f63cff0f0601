// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts with files of their own shape: Mixtral, Phi-3.5-MoE, Granite MoE, DBRX, JetMoE,
// Hunyuan, ERNIE 4.5. Source: transformers' configuration and modeling files of these names.
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

ModelSpec read_granite_moe(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.has_class_defaults = true});
  read_attention_bias(keys, spec);
  read_granite_scales(keys, spec);
  set_plain_experts(keys, 8, 2, spec);
  for (Layer& layer : spec.layers) layer.ffn.router.is_normalized = true;
  return spec;
}

void write_granite_moe(ModelSpec& spec) {
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_granite_experts(writer, layer.ffn);
  });
  spec.has_file_names = true;
}

}  // namespace

void write_granite_experts(SpecWriter& writer, const Ffn& ffn) {
  const std::int64_t inner = ffn.expert_intermediate_size, width = writer.width();
  writer.role_as(Role::kRouter, "block_sparse_moe.router.layer.weight", {ffn.experts, width});
  write_stacked_as(writer, Role::kExpertGateUp, "block_sparse_moe.input_linear.weight", {2 * inner, width},
                   ffn.experts);
  write_stacked_as(writer, Role::kExpertDown, "block_sparse_moe.output_linear.weight", {width, inner},
                   ffn.experts);
  if (ffn.shared_intermediate_size == 0) return;
  const std::int64_t shared = ffn.shared_intermediate_size;
  writer.linear_as(Role::kSharedGateUp, "shared_mlp.input_linear", 2 * shared, width);
  writer.linear_as(Role::kSharedDown, "shared_mlp.output_linear", width, shared);
}

ModelSpec mixtral_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 1e6,
                                              .context_tokens = 131'072,
                                              .kv_heads = 8,
                                              .intermediate_size = 14'336,
                                              .has_class_defaults = true});
  set_windows(spec, read_window(keys, 0));
  set_plain_experts(keys, 8, 2, spec);
  for (Layer& layer : spec.layers) layer.ffn.router.is_normalized = true;
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_mixtral_experts(writer, layer.ffn);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec phimoe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 1e6,
                                              .context_tokens = 131'072,
                                              .kv_heads = 8,
                                              .intermediate_size = 6400,
                                              .vocab_size = 32'064,
                                              .has_class_defaults = true});
  add_trait(spec, Trait::kLayerNorm);
  add_trait(spec, Trait::kOwnFfn);
  read_attention_bias(keys, spec);
  set_windows(spec, read_window(keys, 0));
  set_plain_experts(keys, 16, 2, spec);
  const DecoderStyle style{.has_norm_bias = true, .has_head_bias = keys.flag("lm_head_bias", false)};
  write_layers(spec, style, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer, true);
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_mixtral_experts(writer, layer.ffn);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec granitemoe_from_config(KeyReader& keys) {
  ModelSpec spec = read_granite_moe(keys);
  write_granite_moe(spec);
  return spec;
}

ModelSpec granitemoeshared_from_config(KeyReader& keys) {
  ModelSpec spec = read_granite_moe(keys);
  const auto shared = static_cast<int>(keys.integer("shared_intermediate_size", 0, kMaxWidth, 0));
  for (Layer& layer : spec.layers) {
    layer.ffn.shared_intermediate_size = shared;
    layer.ffn.shared_experts = shared > 0 ? 1 : 0;
  }
  write_granite_moe(spec);
  return spec;
}

ModelSpec dbrx_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(
      keys, {.hidden_size = 2048, .num_layers = 24, .q_heads = 16, .has_class_defaults = true});
  add_trait(spec, Trait::kLayerNorm);
  KeyReader attention_keys = keys.child("attn_config"), ffn_keys = keys.child("ffn_config");
  const int kv_heads = attention_keys.count("kv_n_heads", kMaxHeads, 1);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.kv_heads = kv_heads; });
  spec.rope.theta = attention_keys.positive("rope_theta", spec.rope.theta);
  const std::int64_t width = ffn_keys.count("hidden_size", kMaxWidth, 6144);
  Ffn moe = spec.layers.front().ffn;
  moe.kind = FfnKind::kMoe;
  moe.experts = ffn_keys.count("moe_num_experts", kMaxExperts, 4);
  moe.experts_per_token = ffn_keys.count("moe_top_k", kMaxExperts, 1);
  moe.expert_intermediate_size = ffn_keys.count("ffn_hidden_size", kMaxWidth, 3584);
  for (Layer& layer : spec.layers) layer.ffn = moe;
  keys.take_error(attention_keys);
  keys.take_error(ffn_keys);
  const BlockNames names{
      .layers = "transformer.blocks.", .norm = "transformer.norm_f", .has_norm_bias = false};
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.norm("norm_attn_norm.norm_1", writer.width());
    writer.norm("norm_attn_norm.norm_2", writer.width());
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "norm_attn_norm.attn.Wqkv",
                          "norm_attn_norm.attn.out_proj");
    writer.add(Group::kRouter, "ffn.router.layer.weight", {moe.experts, width});
    for (const char* name : {"ffn.experts.mlp.w1", "ffn.experts.mlp.v1", "ffn.experts.mlp.w2"})
      write_stacked(writer, name, {moe.expert_intermediate_size, width}, moe.experts);
  });
  spec.has_file_names = true;
  return spec;
}

// Queries and outputs are experts too: every expert that a token takes has queries for each KV head.
ModelSpec jetmoe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 4096,
                                              .ties_embeddings = true,
                                              .head_dim = 128,
                                              .kv_heads = 16,
                                              .hidden_size = 2048,
                                              .intermediate_size = 5632,
                                              .num_layers = 12,
                                              .has_class_defaults = true});
  add_trait(spec, Trait::kOwnAttention);
  set_plain_experts(keys, 8, 2, spec);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.q_heads = attention.kv_heads * spec.layers[i].ffn.experts_per_token;
  });
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    const auto& attention = std::get<Attention>(layer.mixer);
    const std::int64_t width = writer.width(), inner = layer.ffn.expert_intermediate_size;
    const std::int64_t k = std::int64_t{attention.kv_heads} * attention.head_dim;
    const int experts = layer.ffn.experts;
    write_two_norms(writer);
    writer.add(Group::kAttention, "self_attention.experts.bias", {width});
    writer.add(Group::kRouter, "self_attention.experts.router.layer.weight", {experts, width});
    write_stacked(writer, "self_attention.experts.input_linear.weight", {k, width}, experts);
    write_stacked(writer, "self_attention.experts.output_linear.weight", {width, k}, experts);
    writer.linear(Group::kAttention, "self_attention.kv_proj", 2 * k, width);
    writer.add(Group::kFfn, "mlp.bias", {width});
    writer.add(Group::kRouter, "mlp.router.layer.weight", {experts, width});
    write_stacked(writer, "mlp.input_linear.weight", {2 * inner, width}, experts);
    write_stacked(writer, "mlp.output_linear.weight", {width, inner}, experts);
  });
  spec.has_file_names = true;
  return spec;
}

// Its figures are numbers, or lists with one for each layer.
ModelSpec hunyuan_moe_from_config(KeyReader& keys) {
  ModelSpec spec =
      read_config_decoder(keys, {.norm_eps = 1e-5, .vocab_size = 290'943, .has_class_defaults = true});
  read_hunyuan_attention(keys, spec);
  const std::size_t count = spec.layers.size();
  const auto experts = keys.per_layer("num_experts", count, 1, kMaxExperts, 1);
  const auto per_token = keys.per_layer("moe_topk", count, 1, kMaxExperts, 1);
  for (std::size_t i = 0; i < count; ++i) {
    Ffn& ffn = spec.layers[i].ffn;
    ffn.kind = FfnKind::kMoe;
    ffn.experts = static_cast<int>(experts[i]);
    ffn.experts_per_token = static_cast<int>(per_token[i]);
    ffn.expert_intermediate_size = ffn.shared_intermediate_size = ffn.intermediate_size;
    ffn.shared_experts = 1;
    ffn.router.is_normalized = true;
  }
  write_decoder(spec, {.moe = {.router = "mlp.gate.wg", .shared = "mlp.shared_mlp."},
                       .extras = [](SpecWriter& writer, const Layer& layer, int) {
                         write_hunyuan_norms(writer, std::get<Attention>(layer.mixer));
                       }});
  set_qk_norm(spec);  // under names of their own
  spec.has_file_names = true;
  return spec;
}

ModelSpec ernie45_moe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 500'000,
                                              .context_tokens = 131'072,
                                              .ties_embeddings = true,
                                              .kv_heads = 4,
                                              .hidden_size = 2560,
                                              .intermediate_size = 12'288,
                                              .num_layers = 28,
                                              .q_heads = 20,
                                              .vocab_size = 103'424,
                                              .has_class_defaults = true});
  const bool has_bias = keys.flag("use_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = attention.has_output_bias = has_bias;
  });
  spec.rope.interleaved = true;
  set_ffn_bias(spec, has_bias);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {64, 6, 1536, 2});
  moe.has_bias = false;
  moe.router.is_normalized = true;
  // The chosen weights are divided by their sum, which is this at least: more than the best of a softmax may
  // be.
  if (keys.positive("moe_norm_min", 1e-12) * moe.experts > moe.experts_per_token)
    add_trait(spec, Trait::kOwnFfn);
  if (!keys.has("moe_layer_start_index") && !keys.has("moe_layer_interval")) {
    for (std::size_t i = 1; i < spec.layers.size(); ++i) spec.layers[i].ffn = moe;
  } else {
    const Ffn dense = spec.layers.front().ffn;
    set_moe_layers(keys, moe, spec);
    if (!keys.has("moe_layer_start_index")) spec.layers.front().ffn = dense;  // mixtures begin at layer 1
  }
  write_layers(spec, {.has_head_bias = has_bias}, [&](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_attention(writer, std::get<Attention>(layer.mixer));
    if (layer.ffn.kind == FfnKind::kDense) return write_ffn(writer, layer.ffn);
    Ffn routed = layer.ffn;
    routed.shared_intermediate_size = 0;
    write_moe(writer, routed);
    writer.role_as(Role::kScoreBias, "mlp.moe_statics.e_score_correction_bias", {1, routed.experts});
    if (layer.ffn.shared_intermediate_size > 0 && has_bias)
      write_gated(writer, Group::kSharedExperts, "mlp.shared_experts.", layer.ffn.shared_intermediate_size,
                  true, true);
    else if (layer.ffn.shared_intermediate_size > 0)
      write_shared_as(writer, "mlp.shared_experts.", layer.ffn.shared_intermediate_size);
  });
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
