// SPDX-License-Identifier: Apache-2.0
// Decoders that are Llama's but for a bias, a norm, a window or a scale: Granite, Helium, InternLM 3, CWM,
// Seed-OSS, SmolLM3, ERNIE 4.5, Ministral, Arcee, Hunyuan, Apertus, BitNet, DiffLlama, Doge. Source:
// transformers' configuration and modeling files of these names.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

ModelSpec finish(ModelSpec spec, const DecoderStyle& style = {}) {
  write_decoder(spec, style);
  spec.has_file_names = true;
  return spec;
}

// Layers without rope, and by them windows: SmolLM3.
void read_rope_layers(KeyReader& keys, ModelSpec& spec) {
  const std::int64_t step = keys.integer("no_rope_layer_interval", 1, kMaxLayers, 4);
  const bool is_list = keys["no_rope_layers"].is_array() && keys["no_rope_layers"].size() > 0;
  const auto flags =
      is_list ? keys.per_layer("no_rope_layers", spec.layers.size(), 0, 1) : std::vector<std::int64_t>();
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.uses_rope = is_list ? flags[i] != 0 : (static_cast<std::int64_t>(i) + 1) % step != 0;
  });
}

}  // namespace

ModelSpec granite_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  read_granite_scales(keys, spec);
  return finish(std::move(spec));
}

void read_granite_scales(KeyReader& keys, ModelSpec& spec) {
  spec.embedding_scale = keys.positive("embedding_multiplier", 1.0);
  spec.residual_scale = keys.positive("residual_multiplier", 1.0);
  spec.logits_scale = 1.0 / keys.positive("logits_scaling", 1.0);
  const double scale = keys.positive("attention_multiplier", 1.0);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.scale = scale; });
}

ModelSpec helium_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-8,
                                              .rope_theta = 100'000,
                                              .context_tokens = 4096,
                                              .head_dim = 128,
                                              .kv_heads = 20,
                                              .hidden_size = 2560,
                                              .intermediate_size = 7040,
                                              .num_layers = 24,
                                              .q_heads = 20,
                                              .vocab_size = 48'000,
                                              .has_class_defaults = true});
  const bool has_bias = keys.flag("attention_bias", false);
  spec.rope.interleaved = true;
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  spec = finish(std::move(spec));
  // transformers makes the output projection square, whatever the heads add up to.
  for (Weight& weight : spec.weights)
    if (weight.role == Role::kAttentionOutput) weight.shape[1] = spec.hidden_size;
  return spec;
}

ModelSpec internlm3_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-5,
                                                 .context_tokens = 32'768,
                                                 .head_dim = 128,
                                                 .kv_heads = 2,
                                                 .intermediate_size = 10'240,
                                                 .num_layers = 48,
                                                 .vocab_size = 128'512,
                                                 .has_class_defaults = true});
  // The first published configs say qkv_bias and bias, transformers' class attention_bias and mlp_bias.
  const bool has_qkv_bias = keys.flag("qkv_bias", keys.flag("attention_bias", false));
  const bool has_bias = keys.flag("bias", keys.flag("attention_bias", false));
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_qkv_bias;
    attention.has_output_bias = has_bias;
  });
  set_ffn_bias(spec, keys.flag("bias", keys.flag("mlp_bias", false)));
  return finish(std::move(spec));
}

ModelSpec cwm_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 1e6,
                                              .context_tokens = 131'072,
                                              .head_dim = 128,
                                              .kv_heads = 8,
                                              .hidden_size = 6144,
                                              .intermediate_size = 21'504,
                                              .num_layers = 64,
                                              .q_heads = 48,
                                              .vocab_size = 128'256,
                                              .has_class_defaults = true});
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  const auto window = read_window(keys, 8192);
  if (!read_layer_types(keys, window, spec))
    for_each_attention(spec, [&](Attention& attention, std::size_t i) {
      attention.window_tokens = i % 4 == 0 ? std::nullopt : window;
    });
  return finish(std::move(spec));
}

ModelSpec seed_oss_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-6,
                                              .context_tokens = 524'288,
                                              .head_dim = 128,
                                              .kv_heads = 8,
                                              .intermediate_size = 27'648,
                                              .num_layers = 64,
                                              .q_heads = 80,
                                              .vocab_size = 155'136,
                                              .has_class_defaults = true});
  const bool has_qkv_bias = keys.flag("attention_bias", true);
  const bool has_output_bias = keys.flag("attention_out_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_qkv_bias;
    attention.has_output_bias = has_output_bias;
  });
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  return finish(std::move(spec));
}

ModelSpec smollm3_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-6,
                                              .rope_theta = 2e6,
                                              .context_tokens = 32'768,
                                              .ties_embeddings = true,
                                              .kv_heads = 4,
                                              .hidden_size = 2048,
                                              .num_layers = 36,
                                              .q_heads = 16,
                                              .vocab_size = 128'256,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  read_rope_layers(keys, spec);
  const auto window = read_window(keys, 0);
  const bool uses_window = keys.flag("use_sliding_window", false);
  if (!read_layer_types(keys, window, spec))
    for_each_attention(spec, [&](Attention& attention, std::size_t) {
      attention.window_tokens = uses_window && !attention.uses_rope ? window : std::nullopt;
    });
  return finish(std::move(spec));
}

ModelSpec ernie45_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 500'000,
                                              .context_tokens = 131'072,
                                              .ties_embeddings = true,
                                              .head_dim = 128,
                                              .kv_heads = 2,
                                              .hidden_size = 1024,
                                              .intermediate_size = 3072,
                                              .num_layers = 18,
                                              .q_heads = 16,
                                              .vocab_size = 103'424,
                                              .has_class_defaults = true});
  spec.rope.interleaved = true;
  const bool has_bias = keys.flag("use_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = attention.has_output_bias = has_bias;
  });
  set_ffn_bias(spec, has_bias);
  return finish(std::move(spec));
}

ModelSpec ministral3_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 1e6,
                                              .context_tokens = 262'144,
                                              .head_dim = 128,
                                              .kv_heads = 8,
                                              .intermediate_size = 14'336,
                                              .num_layers = 34,
                                              .vocab_size = 131'072,
                                              .has_class_defaults = true});
  read_windows(keys, read_window(keys, 0), 0, spec);
  // Queries weigh more behind the length before extension.
  KeyReader rope = keys.child(keys["rope_parameters"].is_object() ? "rope_parameters" : "rope_scaling");
  const double beta = rope.has("llama_4_scaling_beta") ? rope.positive("llama_4_scaling_beta", 0.1) : 0.0;
  const std::int64_t tokens = rope.integer("original_max_position_embeddings", 1, kMaxContext, 16'384);
  keys.take_error(rope);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.temperature_scale = beta;
    attention.temperature_tokens = tokens;
    attention.temperature_shift = 0;
  });
  refuse_assumed_rope(keys, spec);
  return finish(std::move(spec));
}

ModelSpec ministral_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-6,
                                              .context_tokens = 131'072,
                                              .kv_heads = 8,
                                              .intermediate_size = 14'336,
                                              .has_class_defaults = true});
  read_windows(keys, read_window(keys, 4096), 0, spec);
  return finish(std::move(spec));
}

ModelSpec arcee_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 4096,
                                              .hidden_size = 2560,
                                              .intermediate_size = 18'432,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  assume_activation(keys, Activation::kRelu2, spec);
  for (Layer& layer : spec.layers) layer.ffn.is_gated = false;
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  return finish(std::move(spec));
}

ModelSpec bitnet_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 500'000,
                                              .kv_heads = 5,
                                              .hidden_size = 2560,
                                              .intermediate_size = 6912,
                                              .num_layers = 30,
                                              .q_heads = 20,
                                              .vocab_size = 128'256,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  assume_activation(keys, Activation::kRelu2, spec);
  return finish(std::move(spec), {.extras = [](SpecWriter& writer, const Layer& layer, int) {
                  writer.role(Role::kAttendedNorm, {writer.width()});
                  writer.role(Role::kInnerNorm, {layer.ffn.intermediate_size});
                }});
}

ModelSpec diffllama_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-5,
                                                 .hidden_size = 2048,
                                                 .intermediate_size = 8192,
                                                 .num_layers = 16,
                                                 .has_class_defaults = true});
  add_trait(spec, Trait::kOwnAttention);
  read_attention_bias(keys, spec);
  return finish(std::move(spec), {.extras = [](SpecWriter& writer, const Layer& layer, int) {
                  const int head_dim = std::get<Attention>(layer.mixer).head_dim;
                  for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
                    writer.add(Group::kAttention, fmt::format("self_attn.{}", name), {head_dim});
                }});
}

ModelSpec apertus_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 12e6,
                                              .context_tokens = 65'536,
                                              .intermediate_size = 14'336,
                                              .vocab_size = 131'072,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_qk_norm(spec);
  refuse_assumed_rope(keys, spec);
  const bool is_xielu = keys.text("hidden_act", "xielu") == "xielu";
  for (Layer& layer : spec.layers) {
    layer.ffn.is_gated = false;
    layer.ffn.has_bias = keys.flag("mlp_bias", false);
    if (is_xielu) layer.ffn.activation = Activation::kXielu;
  }
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.norm_as(Role::kAttentionNorm, "attention_layernorm", writer.width());
    writer.norm_as(Role::kFfnNorm, "feedforward_layernorm", writer.width());
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_ffn(writer, layer.ffn);
    if (!is_xielu) return;
    for (const Role role : {Role::kXieluPositive, Role::kXieluNegative}) writer.role(role, {1});
    for (const Role role : {Role::kXieluBeta, Role::kXieluEps}) writer.role(role, {1}).is_parameter = false;
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec hunyuan_dense_from_config(KeyReader& keys) {
  ModelSpec spec =
      read_config_decoder(keys, {.norm_eps = 1e-5, .vocab_size = 290'943, .has_class_defaults = true});
  read_hunyuan_attention(keys, spec);
  spec = finish(std::move(spec), {.extras = [](SpecWriter& writer, const Layer& layer, int) {
                  write_hunyuan_norms(writer, std::get<Attention>(layer.mixer));
                }});
  set_qk_norm(spec);  // under names of their own
  return spec;
}

void write_hunyuan_norms(SpecWriter& writer, const Attention& attention) {
  writer.norm_as(Role::kQueryNorm, "self_attn.query_layernorm", attention.head_dim);
  writer.norm_as(Role::kKeyNorm, "self_attn.key_layernorm", attention.head_dim);
}

void read_hunyuan_attention(KeyReader& keys, ModelSpec& spec) {
  read_attention_bias(keys, spec);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.qk_norm_follows_rope = true; });
  // What its configs call dynamic is a base stretched by a fixed alpha.
  const Json& scaling = keys[keys["rope_parameters"].is_object() ? "rope_parameters" : "rope_scaling"];
  const auto alpha = scaling["alpha"].as_double();
  if (spec.rope.kind != RopeKind::kDynamic || !alpha || *alpha <= 0) return;
  const double dim = spec.rope.rotary_dim;
  spec.rope.theta *= std::pow(*alpha, dim / std::max(dim - 2, 1.0));
  spec.rope.kind = RopeKind::kDefault;
}

ModelSpec doge_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.kv_heads = 0,
                                                 .hidden_size = 1024,
                                                 .intermediate_size = 2048,
                                                 .q_heads = 8,
                                                 .vocab_size = 32'768,
                                                 .has_class_defaults = true});
  add_trait(spec, Trait::kOwnAttention);
  const bool has_bias = keys.flag("attention_bias", false);
  read_attention_bias(keys, spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  set_qk_norm(spec);
  set_windows(spec, read_window(keys, 0));
  if (keys.flag("is_moe", false)) spec.has_all_weights = false;  // experts by product keys: not listed here
  return finish(std::move(spec), {.extras = [has_bias](SpecWriter& writer, const Layer& layer, int) {
                  const auto& attention = std::get<Attention>(layer.mixer);
                  writer.add(Group::kOther, "input_residual", {writer.width()});
                  writer.add(Group::kOther, "post_attention_residual", {writer.width()});
                  writer.add(Group::kAttention, "self_attn.A", {attention.kv_heads});
                  writer.linear(Group::kAttention, "self_attn.dt_proj", attention.kv_heads,
                                std::int64_t{attention.kv_heads} * attention.head_dim, has_bias);
                }});
}

}  // namespace plimsoll::model
