// SPDX-License-Identifier: Apache-2.0
// Relatives of GPT-2 with distances instead of positions (BLOOM, MPT) or norms on queries and keys
// (Persimmon, Phi 1 and 2). Source: transformers' configuration and modeling files of these names.
#include <algorithm>

#include "model/families/families.h"
#include "model/families/gpt.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

void set_four_times(ModelSpec& spec) {
  for (Layer& layer : spec.layers) layer.ffn.intermediate_size = 4 * spec.hidden_size;
}

void set_alibi(ModelSpec& spec, double most) {
  replace_rope(spec);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.alibi_max = most; });
}

// Small norms of mean and variance on each head's queries and keys.
void write_head_norms(SpecWriter& writer, const Attention& attention) {
  if (!attention.has_qk_norm) return;
  writer.norm_as(Role::kQueryNorm, "self_attn.q_layernorm", attention.head_dim, Role::kQueryNormBias);
  writer.norm_as(Role::kKeyNorm, "self_attn.k_layernorm", attention.head_dim, Role::kKeyNormBias);
}

void read_head_norms(KeyReader& keys, bool otherwise, ModelSpec& spec) {
  const bool has_qk_norm = keys.flag("qk_layernorm", otherwise);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qk_norm = has_qk_norm;
    attention.qk_norm_kind = NormKind::kLayerNorm;
  });
}

void read_mpt_attention(KeyReader& keys, ModelSpec& spec) {
  KeyReader attention_keys = keys.child("attn_config");
  set_alibi(spec, 8.0);
  // The first published code takes another figure, transformers' class does not.
  if (attention_keys.positive("alibi_bias_max", 8.0) != 8.0) add_trait(spec, Trait::kAlibi);
  const double clip = attention_keys.has("clip_qkv") ? attention_keys.positive("clip_qkv", 1.0) : 0.0;
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.scale = attention_keys.positive("softmax_scale", attention.scale);
    attention.clip = clip;
  });
  // Variants of the first published code that transformers' class has not.
  if (!attention_keys.flag("alibi", true) || attention_keys.flag("qk_ln", false) ||
      attention_keys.text("attn_type", "multihead_attention") != "multihead_attention" ||
      !keys.flag("no_bias", true))
    add_trait(spec, Trait::kOwnAttention);
  keys.take_error(attention_keys);
}

}  // namespace

ModelSpec bloom_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 2048,
                                   .ties_embeddings = true,
                                   .hidden_size = 64,
                                   .num_layers = 2,
                                   .q_heads = 8,
                                   .vocab_size = 250'880,
                                   .ignores_head_keys = true});
  set_four_times(spec);
  set_biases(spec, true, true);
  set_alibi(spec, 8.0);
  spec.fused_qkv = FusedRows::kPerHead;
  spec.residual_is_normed = keys.flag("apply_residual_connection_post_layernorm", false);
  for (Layer& layer : spec.layers) layer.ffn.activation = Activation::kGeluTanh;
  const BlockNames names{.embedding = "transformer.word_embeddings.weight"};
  write_blocks(spec, names, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer, true);
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "self_attention.query_key_value",
                          "self_attention.dense");
    write_plain_ffn(writer, layer.ffn, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  });
  SpecWriter writer(spec);
  writer.enter("");
  writer.norm_as(Role::kEmbeddingNorm, "transformer.word_embeddings_layernorm", writer.width(),
                 Role::kEmbeddingNormBias);
  return spec;
}

ModelSpec mpt_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 2048,
                                   .ties_embeddings = true,
                                   .hidden_size = 2048,
                                   .num_layers = 24,
                                   .q_heads = 16,
                                   .vocab_size = 50'368,
                                   .ignores_head_keys = true});
  const auto ratio = static_cast<int>(keys.integer("expansion_ratio", 1, 64, 4));
  for (Layer& layer : spec.layers) {
    layer.ffn.intermediate_size = ratio * spec.hidden_size;
    layer.ffn.has_bias = false;
    layer.ffn.activation = Activation::kGelu;
  }
  read_mpt_attention(keys, spec);
  const BlockNames names{
      .layers = "transformer.blocks.", .norm = "transformer.norm_f", .has_norm_bias = false};
  write_blocks(spec, names, [](SpecWriter& writer, const Layer& layer, int) {
    writer.norm_as(Role::kAttentionNorm, "norm_1", writer.width());
    writer.norm_as(Role::kFfnNorm, "norm_2", writer.width());
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "attn.Wqkv", "attn.out_proj");
    write_plain_ffn(writer, layer.ffn, "ffn.up_proj", "ffn.down_proj");
  });
  return spec;
}

ModelSpec persimmon_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys,
                            {.context_tokens = 16'384,
                             .hidden_size = 4096,
                             .num_layers = 36,
                             .q_heads = 64,
                             .vocab_size = 262'144,
                             .ignores_head_keys = true,
                             .turned_share = 0.5},
                            16'384);
  assume_activation(keys, Activation::kRelu2, spec);
  set_biases(spec, true, true);
  spec.fused_qkv = FusedRows::kPerHead;
  read_head_norms(keys, true, spec);
  const BlockNames names{"model.embed_tokens.weight", "model.layers.", "model.final_layernorm", "lm_head"};
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer, true);
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "self_attn.query_key_value",
                          "self_attn.dense");
    write_head_norms(writer, std::get<Attention>(layer.mixer));
    write_plain_ffn(writer, layer.ffn, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  });
  return spec;
}

ModelSpec phi_from_config(KeyReader& keys) {
  // The first published configs (phi-msft) give the rotating dimensions as a number, and no inner width.
  const bool is_first = keys.has("rotary_dim");
  ModelSpec spec = read_gpt(keys,
                            {.context_tokens = 2048,
                             .hidden_size = 2048,
                             .num_layers = 24,
                             .q_heads = 32,
                             .vocab_size = 51'200,
                             .turned_share = 0.5},
                            is_first ? 0 : 8192);
  assume_activation(keys, Activation::kGeluTanh, spec);
  spec.is_parallel = true;
  set_biases(spec, true, true);
  read_head_norms(keys, false, spec);
  if (is_first) spec.rope.rotary_dim = keys.count("rotary_dim", kMaxHeadDim);
  spec.has_file_names = !is_first;
  if (is_first) add_trait(spec, Trait::kUnknown);  // its files were never looked at
  const BlockNames names{
      "model.embed_tokens.weight", "model.layers.", "model.final_layernorm", "lm_head", true, true};
  const AttentionNames attention_names{.output = "self_attn.dense"};
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.norm_as(Role::kAttentionNorm, "input_layernorm", writer.width(), Role::kAttentionNormBias);
    write_named_attention(writer, std::get<Attention>(layer.mixer), attention_names);
    write_head_norms(writer, std::get<Attention>(layer.mixer));
    write_plain_ffn(writer, layer.ffn, "mlp.fc1", "mlp.fc2");
  });
  return spec;
}

}  // namespace plimsoll::model
