// SPDX-License-Identifier: Apache-2.0
// Gemma 3n and 4 (text): embeddings that enter each layer, layers that read another's keys and values, heads
// of two sizes, feed-forwards of several widths, and in 3n several streams (AltUp). Source: transformers'
// Gemma3nTextConfig, Gemma4TextConfig and their modeling files.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

struct PerLayerInput {
  std::int64_t width = 0;  // 0: none
  std::int64_t vocab = 0;
};

// The last layers read the keys and values of the last one before them that is of their kind.
void share_keys(KeyReader& keys, std::int64_t otherwise, ModelSpec& spec) {
  const auto count = static_cast<std::int64_t>(spec.layers.size());
  const std::int64_t shared = keys.integer("num_kv_shared_layers", 0, count, otherwise);
  const std::int64_t first = count - shared;
  const auto is_sliding = [&](std::int64_t i) {
    return std::get<Attention>(spec.layers[static_cast<std::size_t>(i)].mixer).window_tokens.has_value();
  };
  int last_full = -1, last_sliding = -1;
  for (std::int64_t i = 0; i < first; ++i) (is_sliding(i) ? last_sliding : last_full) = static_cast<int>(i);
  for (std::int64_t i = first; i < count; ++i)
    if (const int source = is_sliding(i) ? last_sliding : last_full; source >= 0)
      spec.layers[static_cast<std::size_t>(i)].kv_source = source;
}

PerLayerInput read_per_layer_input(KeyReader& keys) {
  PerLayerInput input;
  input.width = keys.integer("hidden_size_per_layer_input", 0, kMaxWidth, 256);
  input.vocab = keys.integer("vocab_size_per_layer_input", 1, kMaxVocab, 262'144);
  return input;
}

void write_per_layer_tables(SpecWriter& writer, const PerLayerInput& input) {
  if (input.width == 0) return;
  const std::int64_t all = input.width * static_cast<std::int64_t>(writer.spec().layers.size());
  writer.enter("model.");
  writer.add(Group::kTable, "embed_tokens_per_layer.weight", {input.vocab, all});
  writer.linear(Group::kOther, "per_layer_model_projection", all, writer.width());
  writer.norm("per_layer_projection_norm", input.width);
}

void write_per_layer_parts(SpecWriter& writer, const PerLayerInput& input) {
  if (input.width == 0) return;
  writer.linear(Group::kOther, "per_layer_input_gate", input.width, writer.width());
  writer.linear(Group::kOther, "per_layer_projection", writer.width(), input.width);
  writer.norm("post_per_layer_input_norm", writer.width());
}

void write_four_norms(SpecWriter& writer) {
  for (const char* name : {"input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                           "post_feedforward_layernorm"})
    writer.norm(name, writer.width());
}

// A layer that reads another's keys and values has neither projections nor norms for them; one whose values
// are its keys has no projection for values.
void write_shared_attention(SpecWriter& writer, const Layer& layer, bool values_are_keys) {
  const auto& attention = std::get<Attention>(layer.mixer);
  const std::int64_t q = std::int64_t{attention.q_heads} * attention.head_dim;
  const std::int64_t k = std::int64_t{attention.kv_heads} * attention.head_dim;
  const bool has_bias = attention.has_qkv_bias;
  writer.linear(Group::kAttention, "self_attn.q_proj", q, writer.width(), has_bias);
  writer.norm("self_attn.q_norm", attention.head_dim);
  if (!layer.kv_source) {
    writer.linear(Group::kAttention, "self_attn.k_proj", k, writer.width(), has_bias);
    if (!values_are_keys) writer.linear(Group::kAttention, "self_attn.v_proj", k, writer.width(), has_bias);
    writer.norm("self_attn.k_norm", attention.head_dim);
  }
  writer.linear(Group::kAttention, "self_attn.o_proj", writer.width(), q, has_bias);
}

ModelSpec read_gemma_wide(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  for (const Trait trait : {Trait::kNormPlusOne, Trait::kPostNorms, Trait::kPerLayerInputs, Trait::kOwnRope})
    add_trait(spec, trait);
  spec.embedding_scale = std::sqrt(static_cast<double>(spec.hidden_size));
  read_attention_bias(keys, spec);
  set_qk_norm(spec);
  return spec;
}

// A layer's key in per_layer_config, where numbers are padded with zeros to one length; empty: it has none.
std::string key_of_layer(const KeyReader& overrides, std::size_t layer) {
  for (std::string key = std::to_string(layer); key.size() <= 4; key.insert(0, 1, '0'))
    if (overrides[key].is_object()) return key;
  return {};
}

// Full layers have heads of their own size, and where values are keys a number of KV heads of their own.
void read_global_heads(KeyReader& keys, bool values_are_keys, ModelSpec& spec) {
  const int global_dim = keys.count("global_head_dim", kMaxHeadDim, 512);
  const bool has_heads = values_are_keys && keys.has("num_global_key_value_heads");
  const int heads = has_heads ? keys.count("num_global_key_value_heads", kMaxHeads) : 0;
  const bool is_listed = keys["per_layer_config"].is_object();
  KeyReader overrides = keys.child("per_layer_config");
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    if (is_listed) {
      const std::string index = key_of_layer(overrides, i);
      if (index.empty()) return;
      KeyReader own = overrides.child(index);
      attention.head_dim = own.count("head_dim", kMaxHeadDim, attention.head_dim);
      attention.kv_heads = own.count("num_key_value_heads", kMaxHeads, attention.kv_heads);
      overrides.take_error(own);
    } else if (!attention.window_tokens) {
      attention.head_dim = global_dim;
      if (has_heads) attention.kv_heads = heads;
    }
  });
  keys.take_error(overrides);
}

void write_gemma4_experts(SpecWriter& writer, const Ffn& ffn) {
  const std::int64_t inner = ffn.expert_intermediate_size, width = writer.width();
  for (const char* name :
       {"post_feedforward_layernorm_1", "post_feedforward_layernorm_2", "pre_feedforward_layernorm_2"})
    writer.norm(name, width);
  writer.add(Group::kRouter, "router.proj.weight", {ffn.experts, width});
  writer.add(Group::kRouter, "router.scale", {width});
  writer.add(Group::kRouter, "router.per_expert_scale", {ffn.experts});
  write_stacked(writer, "experts.gate_up_proj", {2 * inner, width}, ffn.experts);
  write_stacked(writer, "experts.down_proj", {width, inner}, ffn.experts);
}

// AltUp's and LAuReL's parts of a layer of Gemma 3n.
void write_streams(SpecWriter& writer, std::int64_t inputs, std::int64_t rank) {
  const std::int64_t width = writer.width();
  writer.add(Group::kOther, "altup.correct_output_scale", {width});
  writer.linear(Group::kOther, "altup.correction_coefs", inputs, inputs);
  writer.linear(Group::kOther, "altup.prediction_coefs", inputs * inputs, inputs);
  writer.linear(Group::kOther, "altup.modality_router", inputs, width);
  writer.norm("altup.router_norm", width);
  writer.linear(Group::kOther, "laurel.linear_left", rank, width);
  writer.linear(Group::kOther, "laurel.linear_right", width, rank);
  writer.norm("laurel.post_laurel_norm", width);
}

}  // namespace

ModelSpec gemma3n_from_config(KeyReader& keys) {
  ModelSpec spec = read_gemma_wide(keys, {.rope_theta = 1e6,
                                          .context_tokens = 32'768,
                                          .ties_embeddings = true,
                                          .head_dim = 256,
                                          .kv_heads = 2,
                                          .hidden_size = 2048,
                                          .intermediate_size = 16'384,
                                          .num_layers = 35,
                                          .q_heads = 8,
                                          .vocab_size = 262'400,
                                          .has_class_defaults = true});
  add_trait(spec, Trait::kResidualStreams);
  read_windows(keys, read_window(keys, 512), 5, spec);
  share_keys(keys, std::min<std::int64_t>(15, static_cast<std::int64_t>(spec.layers.size())), spec);
  const PerLayerInput input = read_per_layer_input(keys);
  const int inputs = keys.count("altup_num_inputs", 64, 4);
  const std::int64_t rank = keys.count("laurel_rank", kMaxWidth, 64);
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    write_four_norms(writer);
    write_shared_attention(writer, layer, false);
    write_ffn(writer, layer.ffn);
    write_streams(writer, inputs, rank);
    write_per_layer_parts(writer, input);
  });
  SpecWriter writer(spec);
  write_per_layer_tables(writer, input);
  writer.enter("model.");
  for (int i = 0; i + 1 < inputs; ++i)
    for (const char* name : {"altup_projections", "altup_unembed_projections"})
      writer.linear(Group::kOther, fmt::format("{}.{}", name, i), spec.hidden_size, spec.hidden_size);
  spec.has_file_names = true;
  return spec;
}

ModelSpec gemma4_from_config(KeyReader& keys) {
  ModelSpec spec = read_gemma_wide(keys, {.rope_theta = 1e6,
                                          .context_tokens = 131'072,
                                          .ties_embeddings = true,
                                          .head_dim = 256,
                                          .kv_heads = 4,
                                          .hidden_size = 2304,
                                          .intermediate_size = 9216,
                                          .num_layers = 30,
                                          .q_heads = 8,
                                          .vocab_size = 262'144,
                                          .has_class_defaults = true});
  auto window = read_window(keys, 512);
  const std::string* bidirectional = keys["use_bidirectional_attention"].as_string();
  if (window && bidirectional && *bidirectional == "all") window = *window / 2 + 1;
  read_windows(keys, window, 6, spec);
  std::get<Attention>(spec.layers.back().mixer).window_tokens.reset();  // the last layer is always full
  const bool values_are_keys = keys.flag("attention_k_eq_v", false);
  read_global_heads(keys, values_are_keys, spec);
  share_keys(keys, 0, spec);
  const bool is_double = keys.flag("use_double_wide_mlp", false);
  for (Layer& layer : spec.layers)
    if (is_double && layer.kv_source) layer.ffn.intermediate_size *= 2;
  if (keys.flag("enable_moe_block", false)) {
    add_trait(spec, Trait::kOwnFfn);
    const Ffn moe = read_moe(keys, spec.layers.front().ffn);
    for (Layer& layer : spec.layers) {
      const int dense = layer.ffn.intermediate_size;
      layer.ffn = moe;
      layer.ffn.intermediate_size = dense;
    }
  }
  const PerLayerInput input = read_per_layer_input(keys);
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    write_four_norms(writer);
    const bool is_full = !std::get<Attention>(layer.mixer).window_tokens;
    write_shared_attention(writer, layer, values_are_keys && is_full);
    write_ffn(writer, layer.ffn);  // beside the experts where there are some
    if (layer.ffn.kind == FfnKind::kMoe) write_gemma4_experts(writer, layer.ffn);
    writer.add(Group::kOther, "layer_scalar", {1}).is_parameter = false;
    write_per_layer_parts(writer, input);
  });
  SpecWriter writer(spec);
  write_per_layer_tables(writer, input);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
