// SPDX-License-Identifier: Apache-2.0
// Decoders with other norms than Llama's: mean-and-variance norms (Nemotron, StableLM, StarCoder 2), one norm
// for parallel blocks (Cohere), norms behind the blocks (OLMo 2 and 3, EXAONE 4), none with weights (OLMo).
// Source: transformers' configuration and modeling files of these names.
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

void write_dense_layer(SpecWriter& writer, const Layer& layer) {
  write_attention(writer, std::get<Attention>(layer.mixer));
  write_ffn(writer, layer.ffn);
}

// OLMo 2 normalizes all query heads at once.
void set_wide_qk_norms(ModelSpec& spec) {
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.has_qk_norm = attention.is_qk_norm_full_width = true;
  });
}

void read_clip(KeyReader& keys, ModelSpec& spec) {
  if (!keys.has("clip_qkv")) return;
  const double clip = keys.positive("clip_qkv", 1.0);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.clip = clip; });
}

// OLMo 2's layer: norms behind attention and feed-forward only.
ModelSpec write_post_normed(ModelSpec spec) {
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.role(Role::kAttentionPostNorm, {writer.width()});
    writer.role(Role::kFfnPostNorm, {writer.width()});
    write_dense_layer(writer, layer);
  });
  spec.has_file_names = true;
  return spec;
}

DecoderDefaults cohere_defaults() {
  return {.norm_eps = 1e-5,
          .context_tokens = 8192,
          .ties_embeddings = true,
          .hidden_size = 8192,
          .intermediate_size = 22'528,
          .num_layers = 40,
          .q_heads = 64,
          .vocab_size = 256'000,
          .has_class_defaults = true};
}

ModelSpec read_cohere(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  spec.norm_kind = NormKind::kLayerNorm;
  spec.is_parallel = true;
  spec.rope.interleaved = true;
  spec.logits_scale = keys.positive("logit_scale", 0.0625);
  read_attention_bias(keys, spec);
  return spec;
}

// One norm without bias in front of both blocks.
void write_cohere(ModelSpec& spec, const MoeStyle& moe = {}) {
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.role(Role::kAttentionNorm, {writer.width()});
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_any_ffn(writer, layer.ffn, moe);
  });
  spec.has_file_names = true;
}

}  // namespace

ModelSpec nemotron_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 4096,
                                              .hidden_size = 6144,
                                              .intermediate_size = 24'576,
                                              .q_heads = 48,
                                              .vocab_size = 256'000,
                                              .has_class_defaults = true,
                                              .turned_share = 0.5});
  spec.norm_kind = NormKind::kLayerNorm;
  spec.norm_adds_one = true;
  assume_activation(keys, Activation::kRelu2, spec);
  read_attention_bias(keys, spec);
  for (Layer& layer : spec.layers) layer.ffn.is_gated = false;
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  write_decoder(spec, {.has_norm_bias = true});
  spec.has_file_names = true;
  return spec;
}

ModelSpec stablelm_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 4096,
                                              .kv_heads = 32,
                                              .hidden_size = 2560,
                                              .intermediate_size = 6912,
                                              .vocab_size = 50'304,
                                              .has_class_defaults = true,
                                              .turned_share = 0.25});
  spec.norm_kind = NormKind::kLayerNorm;
  for_each_attention(spec, [&](Attention& attention, std::size_t) {  // whatever head_dim says
    attention.head_dim = std::max(1, spec.hidden_size / attention.q_heads);
  });
  const bool is_parallel = keys.flag("use_parallel_residual", false);
  spec.is_parallel = is_parallel;
  const bool has_bias = keys.flag("use_qkv_bias", false), has_qk_norm = keys.flag("qk_layernorm", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  write_layers(spec, {.has_norm_bias = true}, [&](SpecWriter& writer, const Layer& layer, int) {
    const auto& attention = std::get<Attention>(layer.mixer);
    writer.norm_as(Role::kAttentionNorm, "input_layernorm", writer.width(), Role::kAttentionNormBias);
    if (!is_parallel)
      writer.norm_as(Role::kFfnNorm, "post_attention_layernorm", writer.width(), Role::kFfnNormBias);
    if (has_qk_norm) {  // one small norm a head: the engine has no use for them
      writer.add(Group::kNorm, "self_attn.q_layernorm.norms.{}.weight", {attention.head_dim}).copies =
          attention.q_heads;
      writer.add(Group::kNorm, "self_attn.k_layernorm.norms.{}.weight", {attention.head_dim}).copies =
          attention.kv_heads;
    }
    write_dense_layer(writer, layer);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec starcoder2_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 4096,
                                              .ties_embeddings = true,
                                              .kv_heads = 2,
                                              .hidden_size = 3072,
                                              .intermediate_size = 12'288,
                                              .num_layers = 30,
                                              .q_heads = 24,
                                              .vocab_size = 49'152,
                                              .has_class_defaults = true});
  spec.norm_kind = NormKind::kLayerNorm;
  const bool has_bias = keys.flag("use_bias", true);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = attention.has_output_bias = has_bias;
  });
  set_windows(spec, read_window(keys, 0));
  assume_activation(keys, Activation::kGeluTanh, spec);
  for (Layer& layer : spec.layers) layer.ffn.is_gated = false;
  set_ffn_bias(spec, has_bias);
  write_layers(spec, {.has_norm_bias = true}, [&](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer, true);
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_plain_ffn(writer, layer.ffn, "mlp.c_fc", "mlp.c_proj");
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec cohere_from_config(KeyReader& keys) {
  DecoderDefaults defaults = cohere_defaults();
  defaults.rope_theta = 500'000;
  ModelSpec spec = read_cohere(keys, defaults);
  const bool has_qk_norm = keys.flag("use_qk_norm", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qk_norm = attention.is_qk_norm_by_head = has_qk_norm;
    attention.qk_norm_kind = NormKind::kLayerNorm;
  });
  write_cohere(spec);
  return spec;
}

ModelSpec cohere2_from_config(KeyReader& keys) {
  ModelSpec spec = read_cohere(keys, cohere_defaults());
  read_windows(keys, read_window(keys, 4096), keys.integer("sliding_window_pattern", 1, kMaxLayers, 4), spec);
  // Full layers have no positions.
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.uses_rope = attention.window_tokens.has_value();
  });
  write_cohere(spec);
  return spec;
}

ModelSpec cohere2_moe_from_config(KeyReader& keys) {
  DecoderDefaults defaults = cohere_defaults();
  defaults.head_dim = 128;
  ModelSpec spec = read_cohere(keys, defaults);
  add_trait(spec, Trait::kUnknown);
  read_windows(keys, read_window(keys, 4096), keys.integer("sliding_window_pattern", 1, kMaxLayers, 4), spec);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {8, 2, dense.intermediate_size});
  moe.shared_intermediate_size = static_cast<int>(
      std::min(std::int64_t{moe.shared_experts} * moe.expert_intermediate_size, kMaxSharedWidth));
  if (keys.has("prefix_dense_intermediate_size"))
    for (Layer& layer : spec.layers)
      layer.ffn.intermediate_size = keys.count("prefix_dense_intermediate_size", kMaxWidth);
  set_moe_layers(keys, moe, spec);
  write_cohere(spec);
  return spec;
}

ModelSpec olmo_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.vocab_size = 50'304, .has_class_defaults = true});
  spec.norm_kind = NormKind::kLayerNorm;
  spec.norm_eps = 1e-5;  // whatever the config says
  spec.has_norm_weights = false;
  read_attention_bias(keys, spec);
  read_clip(keys, spec);
  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    enter_layer(writer, static_cast<int>(i));
    write_dense_layer(writer, layers[i]);
  }
  writer.enter("");
  if (!spec.ties_embeddings) writer.role(Role::kOutputHead, {spec.vocab_size, writer.width()});
  spec.has_file_names = true;
  return spec;
}

ModelSpec olmo2_from_config(KeyReader& keys) {
  ModelSpec spec =
      read_config_decoder(keys, {.norm_eps = 1e-5, .vocab_size = 50'304, .has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_wide_qk_norms(spec);
  return write_post_normed(std::move(spec));
}

ModelSpec olmo3_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(
      keys, {.norm_eps = 1e-5, .rope_theta = 500'000, .vocab_size = 50'304, .has_class_defaults = true});
  read_attention_bias(keys, spec);
  read_windows(keys, read_window(keys, 4096), 4, spec);
  if (spec.rope.kind != RopeKind::kDefault) {  // a scaling is for the full layers alone
    spec.window_rope.emplace();
    spec.window_rope->theta = spec.rope.theta;
    spec.window_rope->rotary_dim = spec.rope.rotary_dim;
  }
  set_wide_qk_norms(spec);
  return write_post_normed(std::move(spec));
}

ModelSpec olmoe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 4096,
                                              .hidden_size = 2048,
                                              .intermediate_size = 2048,
                                              .num_layers = 16,
                                              .q_heads = 16,
                                              .vocab_size = 50'304,
                                              .has_class_defaults = true});
  read_clip(keys, spec);
  set_wide_qk_norms(spec);
  read_attention_bias(keys, spec);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {64, 8, dense.intermediate_size});
  moe.expert_intermediate_size = dense.intermediate_size;
  moe.router.is_normalized = keys.flag("norm_topk_prob", false);
  set_moe_layers(keys, moe, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec exaone4_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .kv_heads = 32,
                                              .intermediate_size = 16'384,
                                              .vocab_size = 102'400,
                                              .has_class_defaults = true});
  set_qk_norm(spec);
  // The pattern is a number, or letters that repeat ("LLLG": three local, one global).
  const std::string* letters = keys["sliding_window_pattern"].as_string();
  const auto window = read_window(keys, 4096);
  const std::int64_t pattern = letters ? static_cast<std::int64_t>(letters->size())
                                       : keys.integer("sliding_window_pattern", 0, kMaxLayers, 4);
  if (letters && !letters->empty() && !read_layer_types(keys, window, spec))
    for_each_attention(spec, [&](Attention& attention, std::size_t i) {
      attention.window_tokens = (*letters)[i % letters->size()] == 'L' ? window : std::nullopt;
    });
  else
    read_windows(keys, window, pattern, spec);
  turn_windows_only(window, spec);
  return write_post_normed(std::move(spec));
}

}  // namespace plimsoll::model
