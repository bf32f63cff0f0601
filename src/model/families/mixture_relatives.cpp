// SPDX-License-Identifier: Apache-2.0
// Grouped attention with mixtures of experts, each with a rule of its own for which layers are dense: EXAONE
// MoE, Solar Open, Mellum, Hunyuan 3, Laguna, Sarvam. Source: transformers' ExaoneMoeConfig, SolarOpenConfig,
// MellumConfig, HYV3Config, LagunaConfig, SarvamMoeConfig.
#include <utility>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

constexpr MoeStyle kScored{.score_bias = "mlp.gate.e_score_correction_bias"};

ModelSpec finish(ModelSpec spec, const DecoderStyle& style) {
  write_decoder(spec, style);
  spec.has_file_names = true;
  return spec;
}

}  // namespace

ModelSpec exaone_moe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .kv_heads = 32,
                                              .intermediate_size = 16'384,
                                              .vocab_size = 102'400,
                                              .has_class_defaults = true});
  set_qk_norm(spec);
  const std::string* letters = keys["sliding_window_pattern"].as_string();
  const auto window = read_window(keys, 4096);
  if (letters && !letters->empty() && !keys["layer_types"].is_array())
    for_each_attention(spec, [&](Attention& attention, std::size_t i) {
      attention.window_tokens = (*letters)[i % letters->size()] == 'L' ? window : std::nullopt;
    });
  else
    read_windows(keys, window, letters ? 0 : keys.integer("sliding_window_pattern", 0, kMaxLayers, 4), spec);
  turn_windows_only(window, spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {64, 8, 1024, 1});
  moe.router = read_grouped_router(keys, 2.5);
  set_moe_behind(keys, moe, 1, spec);
  return finish(std::move(spec), {.moe = {.score_bias = "mlp.e_score_correction_bias"}});
}

ModelSpec solar_open_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 1e6,
                                              .context_tokens = 131'072,
                                              .head_dim = 128,
                                              .kv_heads = 8,
                                              .hidden_size = 4096,
                                              .intermediate_size = 10'240,
                                              .num_layers = 48,
                                              .q_heads = 64,
                                              .vocab_size = 196'608,
                                              .has_class_defaults = true,
                                              .turned_share = 1.0});
  const bool has_bias = keys.flag("attention_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  // All layers are mixtures, whatever the keys of its relatives say.
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {128, 8, 1280, 1});
  moe.router = read_grouped_router(keys, 1.0);
  for (Layer& layer : spec.layers) layer.ffn = moe;
  return finish(std::move(spec), {.moe = kScored});
}

ModelSpec mellum_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.rope_theta = 500'000,
                                              .context_tokens = 131'072,
                                              .head_dim = 128,
                                              .kv_heads = 4,
                                              .hidden_size = 2304,
                                              .intermediate_size = 7168,
                                              .num_layers = 28,
                                              .vocab_size = 98'304,
                                              .has_class_defaults = true,
                                              .turned_share = 1.0});
  read_attention_bias(keys, spec);
  set_qk_norm(spec);
  read_layer_types(keys, read_window(keys, 1024), spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {64, 8, 896});
  moe.router.is_normalized = keys.flag("norm_topk_prob", true);
  set_moe_behind(keys, moe, 0, spec);
  return finish(std::move(spec), {});
}

ModelSpec hy_v3_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 11'158'840.0,
                                              .context_tokens = 131'072,
                                              .head_dim = 128,
                                              .kv_heads = 8,
                                              .hidden_size = 4096,
                                              .intermediate_size = 13'312,
                                              .num_layers = 80,
                                              .q_heads = 64,
                                              .vocab_size = 120'832,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_qk_norm(spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {192, 8, 1536, 1});
  moe.router.scores = Router::Scores::kSigmoid;
  moe.router.is_normalized = true;
  moe.router.scale = keys.positive("router_scaling_factor", 2.826);
  set_moe_behind(keys, moe, 1, spec);
  if (moe.shared_experts == 0) add_trait(spec, Trait::kOwnFfn);  // the class has one of the dense width then
  return finish(
      std::move(spec),
      {.moe = {.router = "mlp.router.gate", .shared = "mlp.shared_mlp.", .score_bias = "mlp.expert_bias"}});
}

ModelSpec laguna_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.rope_theta = 500'000,
                                                 .context_tokens = 131'072,
                                                 .head_dim = 128,
                                                 .kv_heads = 8,
                                                 .hidden_size = 2048,
                                                 .intermediate_size = 8192,
                                                 .num_layers = 40,
                                                 .q_heads = 48,
                                                 .vocab_size = 100'352,
                                                 .has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_qk_norm(spec);
  add_trait(spec, Trait::kOutputGate);
  const std::vector<std::int64_t> heads =
      keys.per_layer("num_attention_heads_per_layer", spec.layers.size(), 1, kMaxHeads,
                     std::get<Attention>(spec.layers.front().mixer).q_heads);
  for_each_attention(
      spec, [&](Attention& attention, std::size_t i) { attention.q_heads = static_cast<int>(heads[i]); });
  read_layer_types(keys, read_window(keys, 512), spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {256, 8, 512});
  moe.shared_experts = 1;
  if (moe.shared_intermediate_size == 0) moe.shared_intermediate_size = 512;
  set_moe_behind(keys, moe, 1, spec);
  const Json& gating = keys["gating"];
  const bool is_per_head =
      gating.is_string() ? *gating.as_string() == "per-head" : gating.as_bool().value_or(true);
  spec = finish(std::move(spec), {.moe = {.score_bias = "mlp.experts.e_score_correction_bias"},
                                  .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                                    const auto& attention = std::get<Attention>(layer.mixer);
                                    writer.linear(WeightGroup::kAttention, "self_attn.g_proj",
                                                  attention.q_heads * (is_per_head ? 1 : attention.head_dim),
                                                  writer.width());
                                  }});
  // Its correction of the scores is a parameter, not a buffer.
  for (Weight& weight : spec.weights)
    if (weight.group == WeightGroup::kRouter) weight.is_parameter = true;
  return spec;
}

ModelSpec sarvam_moe_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.rope_theta = 8e6,
                                                 .context_tokens = 131'072,
                                                 .head_dim = 64,
                                                 .kv_heads = 4,
                                                 .hidden_size = 4096,
                                                 .intermediate_size = 8192,
                                                 .num_layers = 19,
                                                 .q_heads = 64,
                                                 .vocab_size = 262'144,
                                                 .has_class_defaults = true});
  const bool has_bias = keys.flag("attention_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  if (keys.flag("use_qk_norm", true)) set_qk_norm(spec);
  set_moe_behind(keys, read_moe(keys, spec.layers.front().ffn, {128, 6, 1024, 1}), 1, spec);
  return finish(std::move(spec), {.moe = kScored});
}

}  // namespace plimsoll::model
