// SPDX-License-Identifier: Apache-2.0
// GPT-2 and the decoders of its age: GPT-Neo, GPT-NeoX, GPT-J, CodeGen, StarCoder 1, Falcon. Source:
// transformers' configuration and modeling files of these names.
#include "model/families/gpt.h"

#include <algorithm>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
ModelSpec read_gpt(KeyReader& keys, DecoderDefaults defaults, int inner) {
  defaults.norm_eps = 1e-5;
  defaults.has_class_defaults = true;
  const auto others = other_spellings("intermediate_size");  // a null under any of them is four times
  const bool is_silent = !keys.contains("intermediate_size") &&
                         std::none_of(others.begin(), others.end(),
                                      [&](std::string_view other) { return keys.contains(other); });
  defaults.derives_intermediate_size = inner == 0 || !is_silent;
  defaults.intermediate_size = !defaults.derives_intermediate_size
                                   ? inner
                                   : 4 * keys.count("hidden_size", kMaxWidth, defaults.hidden_size);
  ModelSpec spec = read_config_decoder(keys, defaults);
  spec.norm_kind = NormKind::kLayerNorm;
  for (Layer& layer : spec.layers) {
    layer.ffn.is_gated = false;
    layer.ffn.has_bias = true;
  }
  spec.has_file_names = true;
  return spec;
}

void set_biases(ModelSpec& spec, bool has_qkv_bias, bool has_output_bias) {
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_qkv_bias;
    attention.has_output_bias = has_output_bias;
  });
}

void replace_rope(ModelSpec& spec, std::optional<Trait> positions) {
  if (positions) add_trait(spec, *positions);
  spec.rope = RopeSpec();
  spec.rope.kind = RopeKind::kNone;
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.uses_rope = false; });
}

namespace {

void write_positions(ModelSpec& spec, std::string_view name, std::int64_t rows) {
  SpecWriter writer(spec);
  writer.enter("");
  writer.role_as(Role::kPositionEmbedding, name, {rows, writer.width()});
}

const Attention& attention_of(const Layer& layer) {
  return std::get<Attention>(layer.mixer);
}

std::int64_t stated_positions(KeyReader& keys, std::int64_t otherwise) {
  return keys.integer("max_position_embeddings", 1, kMaxVocab, otherwise);
}

// Scores that are products of queries and keys as they are.
void read_unscaled(KeyReader& keys, ModelSpec& spec) {
  if (keys.flag("scale_attn_weights", true)) return;
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.scale = 1.0; });
}

void write_ln_norms(SpecWriter& writer) {
  writer.norm_as(Role::kAttentionNorm, "ln_1", writer.width(), Role::kAttentionNormBias);
  writer.norm_as(Role::kFfnNorm, "ln_2", writer.width(), Role::kFfnNormBias);
}

// GPT-2 keeps its matrices turned round: [in, out].
void write_turned(SpecWriter& writer, Role role, Role bias, std::string_view name, std::int64_t out,
                  std::int64_t in) {
  writer.role_as(role, std::string(name) + ".weight", {in, out}).is_turned = true;
  writer.role_as(bias, std::string(name) + ".bias", {out});
}

// GPT-J's and CodeGen's: one norm, parallel blocks, rotary positions on a part of each head.
ModelSpec read_gptj(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 2048,
                                   .hidden_size = 4096,
                                   .num_layers = 28,
                                   .q_heads = 16,
                                   .vocab_size = 50'400,
                                   .ignores_head_keys = true});
  assume_activation(keys, Activation::kGeluTanh, spec);
  spec.is_parallel = true;
  spec.rope.interleaved = true;
  spec.rope.rotary_dim = keys.count("rotary_dim", kMaxHeadDim, 64);
  const int head_dim = attention_of(spec.layers.front()).head_dim;
  if (spec.rope.rotary_dim > head_dim || spec.rope.rotary_dim % 2 != 0) add_trait(spec, Trait::kOwnRope);
  return spec;
}

// GPT-Neo's runs of kinds, [[["global", "local"], 12]]; every second layer is local where it has none.
std::vector<bool> read_local_layers(KeyReader& keys, std::size_t num_layers) {
  std::vector<bool> local;
  const Json& runs = keys["attention_types"];
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Json& run = runs.items()[i];
    if (!run.is_array() || run.size() != 2 || !run.items()[0].is_array()) continue;
    for (std::int64_t times = run.items()[1].as_integer().value_or(0); times > 0; --times)
      for (const Json& kind : run.items()[0].items())
        if (local.size() < num_layers) local.push_back(kind == Json("local"));
  }
  if (!runs.is_array())
    for (std::size_t i = 0; i < num_layers; ++i) local.push_back(i % 2 == 1);
  if (local.size() != num_layers)
    keys.add_error(ErrorCode::kMalformed, "attention_types",
                   "reading the model: attention_types tell the kind of fewer layers than there are");
  local.resize(num_layers);
  return local;
}

}  // namespace

ModelSpec gpt2_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 1024,
                                   .ties_embeddings = true,
                                   .hidden_size = 768,
                                   .num_layers = 12,
                                   .q_heads = 12,
                                   .vocab_size = 50'257,
                                   .ignores_head_keys = true});
  set_biases(spec, true, true);
  replace_rope(spec);
  assume_activation(keys, Activation::kGeluTanh, spec);
  read_unscaled(keys, spec);
  if (keys.flag("scale_attn_by_inverse_layer_idx", false))
    for_each_attention(
        spec, [](Attention& attention, std::size_t i) { attention.scale /= static_cast<double>(i + 1); });
  write_blocks(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    const std::int64_t width = writer.width(), inner = layer.ffn.intermediate_size;
    write_ln_norms(writer);
    write_turned(writer, Role::kQueryKeyValue, Role::kQueryKeyValueBias, "attn.c_attn", 3 * width, width);
    write_turned(writer, Role::kAttentionOutput, Role::kAttentionOutputBias, "attn.c_proj", width, width);
    write_turned(writer, Role::kUp, Role::kUpBias, "mlp.c_fc", inner, width);
    write_turned(writer, Role::kDown, Role::kDownBias, "mlp.c_proj", width, inner);
  });
  write_positions(spec, "transformer.wpe.weight", stated_positions(keys, 1024));
  return spec;
}

ModelSpec gpt_bigcode_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 1024,
                                   .ties_embeddings = true,
                                   .hidden_size = 768,
                                   .num_layers = 12,
                                   .q_heads = 12,
                                   .vocab_size = 50'257,
                                   .ignores_head_keys = true});
  assume_activation(keys, Activation::kGeluTanh, spec);
  const bool is_mqa = keys.flag("multi_query", true);
  spec.fused_qkv = is_mqa ? FusedRows::kStacked : FusedRows::kPerHead;
  read_unscaled(keys, spec);
  for_each_attention(
      spec, [&](Attention& attention, std::size_t) { attention.kv_heads = is_mqa ? 1 : attention.q_heads; });
  set_biases(spec, true, true);
  replace_rope(spec);
  write_blocks(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_ln_norms(writer);
    write_fused_attention(writer, attention_of(layer), "attn.c_attn", "attn.c_proj");
    write_plain_ffn(writer, layer.ffn, "mlp.c_fc", "mlp.c_proj");
  });
  write_positions(spec, "transformer.wpe.weight", stated_positions(keys, 1024));
  return spec;
}

ModelSpec gpt_neo_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 2048,
                                   .ties_embeddings = true,
                                   .hidden_size = 2048,
                                   .num_layers = 24,
                                   .q_heads = 16,
                                   .vocab_size = 50'257,
                                   .ignores_head_keys = true});
  assume_activation(keys, Activation::kGeluTanh, spec);
  set_biases(spec, false, true);
  replace_rope(spec);
  const std::int64_t window = keys.integer("window_size", 1, kMaxContext, 256);
  const std::vector<bool> local = read_local_layers(keys, spec.layers.size());
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.scale = 1.0;
    if (local[i]) attention.window_tokens = window;
  });
  const AttentionNames names{"attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj",
                             "attn.attention.out_proj"};
  write_blocks(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    write_ln_norms(writer);
    write_named_attention(writer, attention_of(layer), names);
    write_plain_ffn(writer, layer.ffn, "mlp.c_fc", "mlp.c_proj");
  });
  write_positions(spec, "transformer.wpe.weight", stated_positions(keys, 2048));
  return spec;
}

ModelSpec gpt_neox_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys,
                            {.context_tokens = 2048,
                             .hidden_size = 6144,
                             .num_layers = 44,
                             .q_heads = 64,
                             .vocab_size = 50'432,
                             .ignores_head_keys = true,
                             .turned_share = keys.positive("rotary_pct", 0.25)},
                            24'576);
  spec.is_parallel = keys.flag("use_parallel_residual", true);
  spec.fused_qkv = FusedRows::kPerHead;
  assume_activation(keys, Activation::kGelu, spec);
  const bool has_bias = keys.flag("attention_bias", true);
  set_biases(spec, has_bias, has_bias);
  const BlockNames names{"gpt_neox.embed_in.weight", "gpt_neox.layers.", "gpt_neox.final_layer_norm",
                         "embed_out"};
  write_blocks(spec, names, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer, true);
    write_fused_attention(writer, attention_of(layer), "attention.query_key_value", "attention.dense");
    write_plain_ffn(writer, layer.ffn, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  });
  return spec;
}

ModelSpec gptj_from_config(KeyReader& keys) {
  ModelSpec spec = read_gptj(keys);
  const AttentionNames names{"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj"};
  write_blocks(spec, {.has_head_bias = true}, [&](SpecWriter& writer, const Layer& layer, int) {
    writer.norm_as(Role::kAttentionNorm, "ln_1", writer.width(), Role::kAttentionNormBias);
    write_named_attention(writer, attention_of(layer), names);
    write_plain_ffn(writer, layer.ffn, "mlp.fc_in", "mlp.fc_out");
  });
  return spec;
}

ModelSpec codegen_from_config(KeyReader& keys) {
  ModelSpec spec = read_gptj(keys);
  add_trait(spec, Trait::kOwnAttention);  // q, v and k stand in four blocks of heads
  write_blocks(spec, {.has_head_bias = true}, [](SpecWriter& writer, const Layer& layer, int) {
    writer.norm("ln_1", writer.width(), true);
    write_fused_attention(writer, attention_of(layer), "attn.qkv_proj", "attn.out_proj");
    write_plain_ffn(writer, layer.ffn, "mlp.fc_in", "mlp.fc_out");
  });
  return spec;
}

ModelSpec falcon_from_config(KeyReader& keys) {
  ModelSpec spec = read_gpt(keys, {.context_tokens = 2048,
                                   .ties_embeddings = true,
                                   .hidden_size = 4544,
                                   .num_layers = 32,
                                   .q_heads = 71,
                                   .vocab_size = 65'024});
  const bool is_new = keys.flag("new_decoder_architecture", false);
  const bool is_mqa = !is_new && keys.truth("multi_query", true);
  const bool has_bias = keys.flag("bias", false), is_parallel = keys.truth("parallel_attn", true);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    if (!is_new) attention.kv_heads = is_mqa ? 1 : attention.q_heads;
  });
  set_biases(spec, has_bias, has_bias);
  for (Layer& layer : spec.layers) {
    layer.ffn.has_bias = has_bias;
    if (!keys.has("hidden_act")) layer.ffn.activation = Activation::kGelu;
  }
  spec.is_parallel = is_parallel;
  spec.fused_qkv = is_new ? FusedRows::kPerGroup : is_mqa ? FusedRows::kStacked : FusedRows::kPerHead;
  if (keys.flag("alibi", false)) add_trait(spec, Trait::kAlibi);
  const bool has_two = keys.integer("num_ln_in_parallel_attn", 1, 2, is_new ? 2 : 1) == 2;
  const BlockNames names{.embedding = "transformer.word_embeddings.weight"};
  write_blocks(spec, names, [&](SpecWriter& writer, const Layer& layer, int) {
    if (is_parallel && has_two) {
      writer.norm_as(Role::kAttentionNorm, "ln_attn", writer.width(), Role::kAttentionNormBias);
      writer.norm_as(Role::kFfnNorm, "ln_mlp", writer.width(), Role::kFfnNormBias);
    } else {
      writer.norm_as(Role::kAttentionNorm, "input_layernorm", writer.width(), Role::kAttentionNormBias);
      if (!is_parallel)
        writer.norm_as(Role::kFfnNorm, "post_attention_layernorm", writer.width(), Role::kFfnNormBias);
    }
    write_fused_attention(writer, attention_of(layer), "self_attention.query_key_value",
                          "self_attention.dense");
    write_plain_ffn(writer, layer.ffn, "mlp.dense_h_to_4h", "mlp.dense_4h_to_h");
  });
  return spec;
}

}  // namespace plimsoll::model
