// SPDX-License-Identifier: Apache-2.0
// Decoders of fairseq's lineage: OPT and XGLM. Source: transformers' OPTConfig, XGLMConfig and their modeling
// files.
#include <fmt/format.h>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

void set_plain(ModelSpec& spec, bool has_bias) {
  spec.norm_kind = NormKind::kLayerNorm;
  spec.rope = RopeSpec();
  spec.rope.kind = RopeKind::kNone;
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.uses_rope = false;
    attention.has_qkv_bias = attention.has_output_bias = has_bias;
  });
  for (Layer& layer : spec.layers) {
    layer.ffn.is_gated = false;
    layer.ffn.has_bias = has_bias;
  }
  spec.has_file_names = true;
}

void write_layer(SpecWriter& writer, const Layer& layer, bool has_norms) {
  write_named_attention(writer, std::get<Attention>(layer.mixer), {.output = "self_attn.out_proj"});
  if (has_norms) {
    writer.norm_as(Role::kAttentionNorm, "self_attn_layer_norm", writer.width(), Role::kAttentionNormBias);
    writer.norm_as(Role::kFfnNorm, "final_layer_norm", writer.width(), Role::kFfnNormBias);
  }
  write_plain_ffn(writer, layer.ffn, "fc1", "fc2");
}

}  // namespace

ModelSpec opt_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 2048,
                                              .ties_embeddings = true,
                                              .hidden_size = 768,
                                              .intermediate_size = 3072,
                                              .num_layers = 12,
                                              .q_heads = 12,
                                              .vocab_size = 50'272,
                                              .has_class_defaults = true,
                                              .ignores_head_keys = true});
  set_plain(spec, keys.flag("enable_bias", true));
  assume_activation(keys, Activation::kRelu, spec);
  const bool has_norms = keys.flag("layer_norm_elementwise_affine", true);
  const bool has_last =
      keys.flag("do_layer_norm_before", true) && !keys.flag("_remove_final_layer_norm", false);
  const std::int64_t narrow = keys.count("word_embed_proj_dim", kMaxWidth, spec.hidden_size);
  SpecWriter writer(spec);
  writer.enter("model.decoder.");
  writer.role_as(Role::kTokenEmbedding, "embed_tokens.weight", {spec.vocab_size, narrow});
  // Two rows more than positions: the first two are for padding.
  spec.first_position = 2;
  writer.role_as(Role::kPositionEmbedding, "embed_positions.weight",
                 {keys.integer("max_position_embeddings", 1, kMaxVocab, 2048) + 2, writer.width()});
  // Norms behind the blocks, none at the end, or none with weights: the 350M of 2022 and its relatives.
  if (!has_norms || !has_last || !keys.flag("do_layer_norm_before", true)) add_trait(spec, Trait::kUnknown);
  if (narrow != spec.hidden_size) {
    writer.linear(Group::kOther, "project_out", narrow, writer.width());
    writer.linear(Group::kOther, "project_in", writer.width(), narrow);
  }
  const std::vector<Layer> layers = spec.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    writer.enter(fmt::format("model.decoder.layers.{}.", i), static_cast<int>(i));
    write_layer(writer, layers[i], has_norms);
  }
  writer.enter("");
  if (has_norms && has_last)
    writer.norm_as(Role::kOutputNorm, "model.decoder.final_layer_norm", writer.width(),
                   Role::kOutputNormBias);
  if (!spec.ties_embeddings) writer.role(Role::kOutputHead, {spec.vocab_size, narrow});
  return spec;
}

ModelSpec xglm_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 2048,
                                              .ties_embeddings = true,
                                              .hidden_size = 1024,
                                              .intermediate_size = 4096,
                                              .num_layers = 24,
                                              .q_heads = 16,
                                              .vocab_size = 256'008,
                                              .has_class_defaults = true,
                                              .ignores_head_keys = true});
  set_plain(spec, true);  // its positions are waves: no weights
  add_trait(spec, Trait::kUnknown);
  const BlockNames names{"model.embed_tokens.weight", "model.layers.", "model.layer_norm", "lm_head"};
  write_blocks(spec, names,
               [](SpecWriter& writer, const Layer& layer, int) { write_layer(writer, layer, true); });
  return spec;
}

}  // namespace plimsoll::model
