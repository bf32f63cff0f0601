// SPDX-License-Identifier: Apache-2.0
// Decoders whose layers are not all of one kind: Llama 3.2 Vision's text model (layers that read the image),
// Nemotron's searched architectures (blocks of their own in each layer, or none). Source: transformers'
// MllamaTextConfig; the modeling file published beside Llama-3_3-Nemotron-Super-49B-v1.
#include <fmt/format.h>

#include <cmath>

#include "model/families/families.h"
#include "model/families/heads.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

// The width that a searched feed-forward has: 2/3 of its multiple, in steps of 256.
int searched_width(double multiple, int hidden_size) {
  const double width = std::floor(2.0 * multiple * hidden_size / 3.0);
  const std::int64_t whole =
      width < static_cast<double>(kMaxWidth) ? static_cast<std::int64_t>(width) : kMaxWidth;
  return static_cast<int>((whole + 255) / 256 * 256);
}

void read_searched_block(KeyReader& block, int hidden_size, Layer& layer, bool& has_linear) {
  KeyReader attention_keys = block.child("attention"), ffn_keys = block.child("ffn");
  auto attention = std::get<Attention>(layer.mixer);
  if (attention_keys.flag("no_op", false) || attention_keys.flag("replace_with_linear", false)) {
    has_linear = has_linear || attention_keys.flag("replace_with_linear", false);
    layer.mixer = NoMixer{};
  } else {
    const int group = attention_keys.count("n_heads_in_group", kMaxHeads, attention.q_heads);
    if (attention.q_heads % group != 0)
      attention_keys.add_error(ErrorCode::kMalformed, "n_heads_in_group",
                               "reading the model: attention heads do not split into groups of this size");
    attention.kv_heads = std::max(1, attention.q_heads / group);
    if (attention_keys.has("window_length"))
      attention.window_tokens = attention_keys.integer("window_length", 1, kMaxContext);
    layer.mixer = attention;
  }
  if (ffn_keys.flag("no_op", false) || ffn_keys.flag("replace_with_linear", false)) {
    has_linear = has_linear || ffn_keys.flag("replace_with_linear", false);
    layer.ffn = Ffn{.kind = FfnKind::kNone};
  } else if (ffn_keys.has("intermediate_size")) {
    layer.ffn.intermediate_size = ffn_keys.count("intermediate_size", kMaxWidth);
  } else {
    layer.ffn.intermediate_size = searched_width(ffn_keys.positive("ffn_mult", 1.0), hidden_size);
  }
  block.take_error(attention_keys);
  block.take_error(ffn_keys);
}

}  // namespace

ModelSpec mllama_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 500'000,
                                              .context_tokens = 131'072,
                                              .kv_heads = 8,
                                              .intermediate_size = 14'336,
                                              .num_layers = 40,
                                              .vocab_size = 128'256,
                                              .has_class_defaults = true});
  add_trait(spec, Trait::kOwnAttention);
  spec.ties_embeddings = false;  // the embedding has eight rows more than the head
  const auto is_default = [](std::size_t i) { return i >= 3 && i <= 38 && (i - 3) % 5 == 0; };
  // The list may name layers beyond the last, as the class default does in smaller models.
  const Json& listed = keys["cross_attention_layers"];
  std::vector<bool> is_cross(spec.layers.size());
  for (std::size_t i = 0; i < is_cross.size(); ++i) is_cross[i] = !listed.is_array() && is_default(i);
  for (const Json& item : listed.items())
    if (const auto index = item.as_integer();
        index && *index >= 0 && *index < static_cast<std::int64_t>(is_cross.size()))
      is_cross[static_cast<std::size_t>(*index)] = true;
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.is_cross = is_cross[i];
    attention.uses_rope = !is_cross[i];
    attention.has_qk_norm = is_cross[i];
  });
  const AttentionNames cross{"cross_attn.q_proj", "cross_attn.k_proj", "cross_attn.v_proj",
                             "cross_attn.o_proj"};
  write_layers(spec, {}, [&](SpecWriter& writer, const Layer& layer, int) {
    const auto& attention = std::get<Attention>(layer.mixer);
    write_two_norms(writer);
    if (attention.is_cross) {
      write_named_attention(writer, attention, cross);
      writer.norm("cross_attn.q_norm", attention.head_dim);
      writer.norm("cross_attn.k_norm", attention.head_dim);
      writer.add(Group::kAttention, "cross_attn_attn_gate", {1});
      writer.add(Group::kFfn, "cross_attn_mlp_gate", {1});
    } else {
      write_attention(writer, attention);
    }
    write_ffn(writer, layer.ffn);
  });
  for (Weight& weight : spec.weights)  // eight rows more, for the image's own token
    if (weight.role == Role::kTokenEmbedding) weight.shape[0] += 8;
  spec.has_file_names = true;
  return spec;
}

namespace {

// DeciLM 7B: Llama with a number of KV heads for each layer.
ModelSpec finish_deci(KeyReader& keys, ModelSpec spec) {
  const auto kv_heads = keys.per_layer("num_key_value_heads_per_layer", spec.layers.size(), 1, kMaxHeads);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.kv_heads = static_cast<int>(kv_heads[i]);
    check_heads(keys, attention, "num_key_value_heads_per_layer");
  });
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

}  // namespace

ModelSpec nemotron_nas_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(
      keys, {.norm_eps = 1e-5, .rope_theta = 500'000, .context_tokens = 131'072, .has_class_defaults = true});
  if (keys.has("num_key_value_heads_per_layer")) return finish_deci(keys, std::move(spec));
  add_trait(spec, Trait::kOwnFfn);
  const Json& blocks = keys["block_configs"];
  if (blocks.size() != spec.layers.size())
    keys.add_error(
        ErrorCode::kMalformed, "block_configs",
        fmt::format("reading the model: {} blocks for {} layers", blocks.size(), spec.layers.size()));
  bool has_linear = false;
  for (std::size_t i = 0; i < spec.layers.size() && i < blocks.size(); ++i) {
    KeyReader block = keys.child("block_configs", i);
    read_searched_block(block, spec.hidden_size, spec.layers[i], has_linear);
    keys.take_error(block);
  }
  read_attention_bias(keys, spec);
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) {
      writer.role(Role::kAttentionNorm, {writer.width()});
      write_attention(writer, *attention);
    }
    if (layer.ffn.kind == FfnKind::kNone) return;
    writer.role(Role::kFfnNorm, {writer.width()});
    write_ffn(writer, layer.ffn);
  });
  if (has_linear) spec.has_all_weights = false;  // blocks that are one matrix: in no file we could look at
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
