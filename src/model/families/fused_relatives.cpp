// SPDX-License-Identifier: Apache-2.0
// Decoders whose files hold gate and up, or q, k and v, as one matrix: GLM 4, Phi 3 and its vision model,
// ChatGLM 3, InternLM 2, Baichuan, Qwen 1; and Orion, InternLM 1, MiniCPM, MiMo, EXAONE 3 under the same roof
// because transformers builds them not or under other names. Source: transformers' GlmConfig, Glm4Config,
// Phi3Config; for the rest the tensors of the published files.
#include <fmt/format.h>

#include <cmath>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

DecoderDefaults glm_defaults() {
  return {.norm_eps = 1.5625e-7,
          .context_tokens = 131'072,
          .head_dim = 128,
          .kv_heads = 2,
          .intermediate_size = 13'696,
          .num_layers = 40,
          .vocab_size = 151'552,
          .has_class_defaults = true,
          .turned_share = 0.5};
}

ModelSpec read_glm(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, glm_defaults());
  spec.rope.interleaved = true;
  const bool has_bias = keys.flag("attention_bias", true);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  spec.has_file_names = true;
  return spec;
}

void write_phi3(ModelSpec& spec) {
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "self_attn.qkv_proj", "self_attn.o_proj");
    write_fused_ffn(writer, layer.ffn);
  });
  spec.has_file_names = true;
}

}  // namespace

ModelSpec glm_from_config(KeyReader& keys) {
  ModelSpec spec = read_glm(keys);
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_fused_ffn(writer, layer.ffn);
  });
  return spec;
}

ModelSpec glm4_from_config(KeyReader& keys) {
  ModelSpec spec = read_glm(keys);
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    writer.role_as(Role::kAttentionPostNorm, "post_self_attn_layernorm.weight", {writer.width()});
    writer.role_as(Role::kFfnPostNorm, "post_mlp_layernorm.weight", {writer.width()});
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_fused_ffn(writer, layer.ffn);
  });
  return spec;
}

ModelSpec phi3_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 4096,
                                              .hidden_size = 3072,
                                              .intermediate_size = 8192,
                                              .vocab_size = 32'064,
                                              .has_class_defaults = true,
                                              .turned_share = 1.0});
  set_windows(spec, read_window(keys, 0));
  write_phi3(spec);
  return spec;
}

// Phi 3 with CLIP-L at 336 beside it; the config names the tower and states none of its sizes.
ModelSpec phi3v_from_config(KeyReader& keys) {
  ModelSpec spec = phi3_from_config(keys);
  KeyReader image = keys.child("img_processor"), embedding = keys.child("embd_layer");
  spec.encoders.emplace_back("img_processor");
  if (image.text("model_name", "") != "openai/clip-vit-large-patch14-336" ||
      embedding.text("projection_cls", "") != "mlp") {
    spec.has_all_weights = false;
    return spec;
  }
  constexpr std::int64_t kWidth = 1024, kInner = 4096, kPatches = 24 * 24;
  SpecWriter writer(spec);
  writer.override_group(Group::kEncoder);
  writer.enter("model.vision_embed_tokens.img_processor.vision_model.");
  writer.add(Group::kEncoder, "embeddings.class_embedding", {kWidth});
  writer.add(Group::kEncoder, "embeddings.patch_embedding.weight", {kWidth, 3, 14, 14});
  writer.add(Group::kEncoder, "embeddings.position_embedding.weight", {kPatches + 1, kWidth});
  writer.norm("pre_layrnorm", kWidth, true);
  writer.norm("post_layernorm", kWidth, true);
  for (int i = 0; i < 24; ++i) {
    writer.enter(fmt::format("model.vision_embed_tokens.img_processor.vision_model.encoder.layers.{}.", i));
    for (const char* name :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"})
      writer.linear(Group::kEncoder, name, kWidth, kWidth, true);
    writer.norm("layer_norm1", kWidth, true);
    writer.norm("layer_norm2", kWidth, true);
    writer.linear(Group::kEncoder, "mlp.fc1", kInner, kWidth, true);
    writer.linear(Group::kEncoder, "mlp.fc2", kWidth, kInner, true);
  }
  writer.enter("model.vision_embed_tokens.");
  writer.add(Group::kEncoder, "glb_GN", {1, 1, 4 * kWidth});
  writer.add(Group::kEncoder, "sub_GN", {1, 1, 1, 4 * kWidth});
  writer.linear(Group::kEncoder, "img_projection.0", spec.hidden_size, 4 * kWidth, true);
  writer.linear(Group::kEncoder, "img_projection.2", spec.hidden_size, spec.hidden_size, true);
  return spec;
}

ModelSpec chatglm_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-5, .context_tokens = 8192});
  const bool has_qkv_bias = keys.flag("add_qkv_bias", false) || keys.flag("add_bias_linear", false);
  const bool has_bias = keys.flag("add_bias_linear", false);
  const bool is_grouped = keys.flag("multi_query_attention", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_qkv_bias;
    attention.has_output_bias = has_bias;
    if (!is_grouped) attention.kv_heads = attention.q_heads;
  });
  const BlockNames names{
      .embedding = "transformer.embedding.word_embeddings.weight",
      .layers = "transformer.encoder.layers.",
      .norm = keys.flag("post_layer_norm", true) ? "transformer.encoder.final_layernorm" : "",
      .head = "transformer.output_layer",
      .has_norm_bias = false};
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "self_attention.query_key_value",
                          "self_attention.dense");
    writer.linear(Group::kFfn, "mlp.dense_h_to_4h", 2 * std::int64_t{layer.ffn.intermediate_size},
                  writer.width(), has_bias);
    writer.linear(Group::kFfn, "mlp.dense_4h_to_h", writer.width(), layer.ffn.intermediate_size, has_bias);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec internlm2_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.context_tokens = 2048});
  const bool has_bias = keys.flag("bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = attention.has_output_bias = has_bias;
  });
  const BlockNames names{.embedding = "model.tok_embeddings.weight",
                         .layers = "model.layers.",
                         .norm = "model.norm",
                         .head = "output",
                         .has_norm_bias = false};
  write_blocks(spec, names, [](SpecWriter& writer, const Layer& layer, int) {
    writer.norm("attention_norm", writer.width());
    writer.norm("ffn_norm", writer.width());
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "attention.wqkv", "attention.wo");
    writer.linear(Group::kFfn, "feed_forward.w1", layer.ffn.intermediate_size, writer.width());
    writer.linear(Group::kFfn, "feed_forward.w3", layer.ffn.intermediate_size, writer.width());
    writer.linear(Group::kFfn, "feed_forward.w2", writer.width(), layer.ffn.intermediate_size);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec internlm_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {});
  const bool has_bias = keys.flag("bias", true);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = attention.has_output_bias = has_bias;
  });
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec baichuan_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.context_tokens = 4096});
  // The 13B has no rope, and no max_position_embeddings either: ALiBi.
  if (!keys.contains("max_position_embeddings")) {
    add_trait(spec, Trait::kAlibi);
    for_each_attention(spec, [](Attention& attention, std::size_t) { attention.uses_rope = false; });
  }
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "self_attn.W_pack", "self_attn.o_proj");
    write_ffn(writer, layer.ffn);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec orion_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5, .context_tokens = 4096});
  add_trait(spec, Trait::kLayerNorm);
  read_attention_bias(keys, spec);
  write_decoder(spec, {.has_norm_bias = true});
  spec.has_file_names = true;
  return spec;
}

// Its intermediate_size counts gate and up together.
ModelSpec qwen1_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.context_tokens = 8192});
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.kv_heads = attention.q_heads;
    attention.has_qkv_bias = true;
  });
  for (Layer& layer : spec.layers) layer.ffn.intermediate_size /= 2;
  write_blocks(spec, {.has_norm_bias = false}, [](SpecWriter& writer, const Layer& layer, int) {
    writer.norm("ln_1", writer.width());
    writer.norm("ln_2", writer.width());
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "attn.c_attn", "attn.c_proj");
    writer.linear(Group::kFfn, "mlp.w1", layer.ffn.intermediate_size, writer.width());
    writer.linear(Group::kFfn, "mlp.w2", layer.ffn.intermediate_size, writer.width());
    writer.linear(Group::kFfn, "mlp.c_proj", writer.width(), layer.ffn.intermediate_size);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec minicpm_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-6, .ties_embeddings = true});
  spec.embedding_scale = keys.positive("scale_emb", 1.0);
  spec.residual_scale =
      keys.positive("scale_depth", 1.0) / std::sqrt(static_cast<double>(spec.layers.size()));
  spec.logits_scale = keys.positive("dim_model_base", spec.hidden_size) / spec.hidden_size;
  read_attention_bias(keys, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

// Qwen 2's layers; the prediction layers stand in front of a layer of the same kind.
ModelSpec mimo_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-5, .context_tokens = 32'768});
  const bool has_bias = keys.flag("attention_bias", true);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  read_qwen_windows(keys, spec);
  write_decoder(spec);
  const std::int64_t predicted = keys.integer("num_nextn_predict_layers", 0, 64, 0);
  SpecWriter writer(spec);
  writer.override_group(Group::kMtp);
  const Layer layer = spec.layers.back();
  for (int i = 0; i < static_cast<int>(predicted); ++i) {
    writer.enter(fmt::format("model.mtp_layers.{}.", i), static_cast<int>(spec.layers.size()) + i);
    for (const char* name : {"token_layernorm", "hidden_layernorm", "final_layernorm"})
      writer.norm(name, writer.width());
    writer.linear(Group::kMtp, "input_proj", writer.width(), 2 * writer.width());
    write_two_norms(writer);
    write_named_attention(writer, std::get<Attention>(layer.mixer), {});
    write_gated(writer, Group::kMtp, "mlp.", layer.ffn.intermediate_size);
    spec.mtp_layers.push_back(layer);
  }
  spec.has_file_names = true;
  return spec;
}

ModelSpec exaone_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-5,
                                                 .rope_theta = 500'000,
                                                 .context_tokens = 4096,
                                                 .kv_heads = 8,
                                                 .intermediate_size = 14'336,
                                                 .vocab_size = 102'400,
                                                 .has_class_defaults = true});
  read_attention_bias(keys, spec);
  const bool has_bias = keys.flag("mlp_bias", false);
  const AttentionNames attention_names{"attn.attention.q_proj", "attn.attention.k_proj",
                                       "attn.attention.v_proj", "attn.attention.out_proj"};
  write_blocks(spec, {.has_norm_bias = false}, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.norm("ln_1", writer.width());
    writer.norm("ln_2", writer.width());
    write_named_attention(writer, std::get<Attention>(layer.mixer), attention_names);
    writer.linear(Group::kFfn, "mlp.c_fc_0", layer.ffn.intermediate_size, writer.width(), has_bias);
    writer.linear(Group::kFfn, "mlp.c_fc_1", layer.ffn.intermediate_size, writer.width(), has_bias);
    writer.linear(Group::kFfn, "mlp.c_proj", writer.width(), layer.ffn.intermediate_size, has_bias);
  });
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
