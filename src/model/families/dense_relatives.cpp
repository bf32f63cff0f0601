// SPDX-License-Identifier: Apache-2.0
// Dense decoders with a norm, a bias or an order of their own: nanochat, Jais 2, HyperCLOVA X, Granite with
// sliding layers, OLMo Hybrid, GPT-1, BioGPT. Source: transformers' configuration and modeling files of these
// names.
#include <algorithm>
#include <cmath>
#include <utility>

#include "model/families/families.h"
#include "model/families/parts.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

ModelSpec finish(ModelSpec spec, const DecoderStyle& style = {}) {
  write_decoder(spec, style);
  spec.has_file_names = true;
  return spec;
}

// Sinks in every layer, every fourth layer full and the others sliding.
void read_sliding_granite(KeyReader& keys, ModelSpec& spec) {
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_sinks = true; });
  read_attention_bias(keys, spec);
  read_granite_scales(keys, spec);
  const auto window = read_window(keys, 128);
  if (!read_layer_types(keys, window, spec))
    for_each_attention(spec, [&](Attention& attention, std::size_t i) {
      attention.window_tokens = i % 4 == 0 ? std::nullopt : window;
    });
}

void write_sinks(SpecWriter& writer, const Layer& layer) {
  writer.role(Role::kAttentionSinks, {std::get<Attention>(layer.mixer).q_heads});
}

// OLMo's delta net keeps its projections and its gate apart.
void write_olmo_net(SpecWriter& writer, const DeltaNet& net) {
  const std::int64_t width = writer.width();
  for (const char* name : {"linear_attn.A_log", "linear_attn.dt_bias"})
    writer.add(Group::kState, name, {net.value_heads});
  for (const char* name : {"linear_attn.q_proj", "linear_attn.k_proj"})
    writer.linear(Group::kState, name, net.key_width(), width);
  for (const char* name : {"linear_attn.v_proj", "linear_attn.g_proj"})
    writer.linear(Group::kState, name, net.value_width(), width);
  for (const char* name : {"linear_attn.a_proj", "linear_attn.b_proj"})
    writer.linear(Group::kState, name, net.value_heads, width);
  writer.add(Group::kState, "linear_attn.conv1d.weight", {net.channels(), 1, net.kernel});
  writer.add(Group::kState, "linear_attn.o_norm.weight", {net.value_head_dim});
  writer.linear(Group::kState, "linear_attn.o_proj", width, net.value_width());
}

// Positions are learned and nothing rotates.
ModelSpec read_learned(KeyReader& keys, DecoderDefaults defaults) {
  ModelSpec spec = read_unchecked_decoder(keys, defaults);
  add_trait(spec, Trait::kLayerNorm);
  add_trait(spec, Trait::kLearnedPositions);
  spec.rope = RopeSpec();
  spec.rope.kind = RopeKind::kNone;
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.uses_rope = false;
    attention.has_qkv_bias = attention.has_output_bias = true;
  });
  for (Layer& layer : spec.layers) layer.ffn.is_gated = false;
  set_ffn_bias(spec, true);
  return spec;
}

}  // namespace

// Its norms have no weights.
ModelSpec nanochat_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.hidden_size = 768,
                                                 .intermediate_size = 8192,
                                                 .num_layers = 12,
                                                 .q_heads = 6,
                                                 .vocab_size = 50'304,
                                                 .has_class_defaults = true});
  add_trait(spec, Trait::kSoftCap);
  add_trait(spec, Trait::kOwnRope);  // turns the other way round
  read_attention_bias(keys, spec);
  for (Layer& layer : spec.layers) {
    layer.ffn.is_gated = false;
    layer.ffn.activation = Activation::kRelu2;
  }
  write_blocks(spec, {.embedding = "model.embed_tokens.weight", .layers = "model.layers.", .norm = ""},
               [](SpecWriter& writer, const Layer& layer, int) {
                 write_named_attention(writer, std::get<Attention>(layer.mixer), {});
                 writer.linear(Group::kFfn, "mlp.fc1", layer.ffn.intermediate_size, writer.width());
                 writer.linear(Group::kFfn, "mlp.fc2", writer.width(), layer.ffn.intermediate_size);
               });
  spec.has_file_names = true;
  return spec;
}

ModelSpec jais2_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 8192,
                                              .hidden_size = 3328,
                                              .intermediate_size = 26'624,
                                              .q_heads = 26,
                                              .vocab_size = 150'272,
                                              .has_class_defaults = true});
  spec.norm_kind = NormKind::kLayerNorm;
  read_attention_bias(keys, spec, true);
  assume_activation(keys, Activation::kRelu2, spec);
  for (Layer& layer : spec.layers) layer.ffn.is_gated = false;
  set_ffn_bias(spec, keys.flag("mlp_bias", true));
  return finish(std::move(spec), {.has_norm_bias = true});
}

ModelSpec hyperclovax_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  read_granite_scales(keys, spec);
  spec.logits_scale = keys.positive("logits_scaling", 1.0);  // multiplies here
  const bool has_post_norms = keys.flag("use_post_norm", true);
  return finish(std::move(spec), {.extras = [&](SpecWriter& writer, const Layer&, int) {
                  if (!has_post_norms) return;
                  writer.norm_as(Role::kAttentionPostNorm, "post_norm1", writer.width());
                  writer.norm_as(Role::kFfnPostNorm, "post_norm2", writer.width());
                }});
}

ModelSpec granite_swa_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 8192,
                                              .ties_embeddings = true,
                                              .kv_heads = 4,
                                              .hidden_size = 2560,
                                              .intermediate_size = 8192,
                                              .num_layers = 24,
                                              .q_heads = 20,
                                              .vocab_size = 100'352,
                                              .has_class_defaults = true});
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  read_sliding_granite(keys, spec);
  return finish(std::move(spec),
                {.extras = [](SpecWriter& writer, const Layer& layer, int) { write_sinks(writer, layer); }});
}

ModelSpec granitemoe_swa_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.has_class_defaults = true});
  read_sliding_granite(keys, spec);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {8, 2, dense.intermediate_size});
  moe.expert_intermediate_size = dense.intermediate_size;
  moe.shared_intermediate_size = static_cast<int>(keys.integer("shared_intermediate_size", 0, kMaxWidth, 0));
  moe.shared_experts = moe.shared_intermediate_size > 0 ? 1 : 0;
  moe.router.is_normalized = true;
  for (Layer& layer : spec.layers) layer.ffn = moe;
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_sinks(writer, layer);
    write_granite_experts(writer, layer.ffn);
  });
  spec.has_file_names = true;
  return spec;
}

ModelSpec olmo_hybrid_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.context_tokens = 65'536,
                                                 .hidden_size = 3840,
                                                 .intermediate_size = 11'008,
                                                 .q_heads = 30,
                                                 .vocab_size = 100'352,
                                                 .has_class_defaults = true});
  add_trait(spec, Trait::kFullWidthQkNorm);
  add_trait(spec, Trait::kPostNorms);
  read_attention_bias(keys, spec);
  const int heads = std::get<Attention>(spec.layers.front().mixer).q_heads;
  DeltaNet net = read_delta_net(keys);
  const int head_dim = spec.hidden_size / heads;
  if (!keys.has("linear_num_key_heads")) net.key_heads = heads;
  if (!keys.has("linear_num_value_heads")) net.value_heads = heads;
  if (!keys.has("linear_key_head_dim")) net.key_head_dim = std::max(1, head_dim * 3 / 4);
  if (!keys.has("linear_value_head_dim")) net.value_head_dim = 2 * net.key_head_dim;
  const bool has_types = read_state_layers(keys, state_of(net), spec);
  for (std::size_t i = 0; !has_types && i < spec.layers.size(); ++i)
    if (i % 4 != 3 && i + 1 != spec.layers.size()) spec.layers[i].mixer = state_of(net);
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    const auto* attention = std::get_if<Attention>(&layer.mixer);
    writer.norm("post_attention_layernorm", writer.width());
    writer.norm(attention ? "post_feedforward_layernorm" : "input_layernorm", writer.width());
    if (attention) {
      write_attention(writer, *attention);
      writer.norm("self_attn.q_norm", std::int64_t{attention->q_heads} * attention->head_dim);
      writer.norm("self_attn.k_norm", std::int64_t{attention->kv_heads} * attention->head_dim);
    } else {
      write_olmo_net(writer, net);
    }
    write_ffn(writer, layer.ffn);
  });
  spec.has_file_names = true;
  return spec;
}

// The first GPT: norms behind, no norm at the end, the feed-forward four times as wide whatever n_inner says.
ModelSpec openai_gpt_from_config(KeyReader& keys) {
  const int width = keys.count("hidden_size", kMaxWidth, 768);
  ModelSpec spec = read_learned(keys, {.norm_eps = 1e-5,
                                       .context_tokens = 512,
                                       .ties_embeddings = true,
                                       .hidden_size = 768,
                                       .intermediate_size = 4 * width,
                                       .num_layers = 12,
                                       .q_heads = 12,
                                       .vocab_size = 40'478,
                                       .has_class_defaults = true,
                                       .ignores_head_keys = true,
                                       .derives_intermediate_size = true});
  add_trait(spec, Trait::kPostNorms);
  for (Layer& layer : spec.layers) layer.ffn.intermediate_size = 4 * width;
  const BlockNames names{.embedding = "tokens_embed.weight", .layers = "h.", .norm = ""};
  const auto turned = [](SpecWriter& writer, Group group, const std::string& name, std::int64_t out,
                         std::int64_t in) {
    writer.add(group, name + ".weight", {in, out}).is_linear = true;
    writer.add(group, name + ".bias", {out});
  };
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    turned(writer, Group::kAttention, "attn.c_attn", 3 * std::int64_t{width}, width);
    turned(writer, Group::kAttention, "attn.c_proj", width, width);
    for (const char* norm : {"ln_1", "ln_2"}) writer.norm(norm, width, true);
    turned(writer, Group::kFfn, "mlp.c_fc", layer.ffn.intermediate_size, width);
    turned(writer, Group::kFfn, "mlp.c_proj", width, layer.ffn.intermediate_size);
  });
  SpecWriter(spec).add(Group::kEmbedding, "positions_embed.weight",
                       {keys.integer("max_position_embeddings", 1, kMaxVocab, 512), width});
  return spec;
}

ModelSpec biogpt_from_config(KeyReader& keys) {
  ModelSpec spec = read_learned(keys, {.norm_eps = 1e-12,
                                       .context_tokens = 1024,
                                       .ties_embeddings = true,
                                       .hidden_size = 1024,
                                       .intermediate_size = 4096,
                                       .num_layers = 24,
                                       .q_heads = 16,
                                       .vocab_size = 42'384,
                                       .has_class_defaults = true,
                                       .ignores_head_keys = true});
  spec.traits.clear();  // all of it is computed
  spec.norm_kind = NormKind::kLayerNorm;
  spec.norm_eps = 1e-5;  // whatever the config says
  spec.first_position = 2;
  if (keys.flag("scale_embedding", true))
    spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  assume_activation(keys, Activation::kGelu, spec);
  const BlockNames names{.embedding = "biogpt.embed_tokens.weight",
                         .layers = "biogpt.layers.",
                         .norm = "biogpt.layer_norm",
                         .head = "output_projection"};
  const AttentionNames attention_names{.output = "self_attn.out_proj"};
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    write_named_attention(writer, std::get<Attention>(layer.mixer), attention_names);
    writer.norm_as(Role::kAttentionNorm, "self_attn_layer_norm", writer.width(), Role::kAttentionNormBias);
    writer.norm_as(Role::kFfnNorm, "final_layer_norm", writer.width(), Role::kFfnNormBias);
    write_plain_ffn(writer, layer.ffn, "fc1", "fc2");
  });
  // Two rows stand before the first position.
  SpecWriter(spec).role_as(
      Role::kPositionEmbedding, "biogpt.embed_positions.weight",
      {keys.integer("max_position_embeddings", 1, kMaxVocab, 1024) + 2, spec.hidden_size});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
