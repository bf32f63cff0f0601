// SPDX-License-Identifier: Apache-2.0
#include "model/families/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/families/heads.h"
#include "model/rope.h"

namespace plimsoll::model {
namespace {

constexpr std::array<std::pair<std::string_view, Activation>, 8> kActivations{{
    {"silu", Activation::kSilu},
    {"swish", Activation::kSilu},
    {"gelu", Activation::kGelu},
    {"gelu_new", Activation::kGeluTanh},
    {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_fast", Activation::kGeluTanh},
    {"relu", Activation::kRelu},
    {"relu2", Activation::kRelu2},
}};

// The spelling under which the config has null for a key; the key itself where it has none.
std::string_view spelling_with_null(const KeyReader& keys, std::string_view key) {
  if (!keys.contains(key))
    for (const std::string_view other : other_spellings(key))
      if (keys.contains(other)) return other;
  return key;
}

// What counts most, where the config does not say it and the class's own figure stands for it.
void note_assumed(const KeyReader& keys, const DecoderDefaults& defaults, ModelSpec& spec) {
  const Attention& attention = std::get<Attention>(spec.layers.front().mixer);
  const auto note = [&](std::string_view key, std::int64_t value) {
    if (keys.has(key)) return;
    const std::string_view spelled = spelling_with_null(keys, key);
    spec.assumed.push_back({std::string(spelled), value, keys.contains(spelled)});
  };
  note("num_hidden_layers", static_cast<std::int64_t>(spec.layers.size()));
  note("hidden_size", spec.hidden_size);
  note("num_attention_heads", attention.q_heads);
  note("vocab_size", spec.vocab_size);
  if (!defaults.derives_intermediate_size)
    note("intermediate_size", spec.layers.front().ffn.intermediate_size);
}

void fill_layers(KeyReader& keys, const Attention& attention, Ffn ffn, std::size_t num_layers,
                 std::optional<std::int64_t> otherwise, ModelSpec& spec) {
  const auto inner = keys.per_layer("intermediate_size", num_layers, 1, kMaxWidth, otherwise);
  spec.layers.assign(num_layers, Layer{attention, ffn});
  for (std::size_t i = 0; i < num_layers; ++i)
    spec.layers[i].ffn.intermediate_size = static_cast<int>(inner[i]);
}

}  // namespace

void check_heads(KeyReader& keys, const Attention& attention, std::string_view kv_heads_key) {
  if (attention.q_heads % attention.kv_heads != 0)
    keys.add_error(ErrorCode::kMalformed, kv_heads_key,
                   fmt::format("reading the model: {} attention heads cannot share {} KV heads evenly",
                               attention.q_heads, attention.kv_heads));
}

int read_head_dim(KeyReader& keys, int hidden_size, int heads, std::string_view key,
                  std::string_view heads_key, int otherwise) {
  if (keys.has(key)) return keys.count(key, kMaxHeadDim);
  if (otherwise > 0) return otherwise;
  // A number of heads, or a width, that is only assumed is no fault of the config.
  const bool is_assumed = heads_key == "num_attention_heads" && !keys.has("hidden_size");
  if (hidden_size % heads != 0 && keys.has(heads_key) && !is_assumed)
    keys.add_error(
        ErrorCode::kMalformed, heads_key,
        fmt::format("reading the model: a width of {} does not split into {} heads", hidden_size, heads));
  return std::max(1, hidden_size / heads);
}

Activation activation_of(std::string_view name) {
  const auto known = std::find_if(kActivations.begin(), kActivations.end(),
                                  [&](const auto& activation) { return activation.first == name; });
  return known == kActivations.end() ? Activation::kOther : known->second;
}

void add_trait(ModelSpec& spec, Trait trait) {
  if (std::find(spec.traits.begin(), spec.traits.end(), trait) == spec.traits.end())
    spec.traits.push_back(trait);
}

ModelSpec read_config_decoder(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec;
  const auto otherwise = [&](std::int64_t value) {
    return keys.is_nested() || defaults.has_class_defaults ? std::optional(value) : std::nullopt;
  };
  spec.hidden_size = keys.count("hidden_size", kMaxWidth, otherwise(defaults.hidden_size));
  spec.vocab_size = keys.integer("vocab_size", 1, kMaxVocab, otherwise(defaults.vocab_size));
  spec.norm_eps = keys.positive("rms_norm_eps", defaults.norm_eps);
  spec.ties_embeddings = keys.flag("tie_word_embeddings", defaults.ties_embeddings);
  const int num_layers = keys.count("num_hidden_layers", kMaxLayers, otherwise(defaults.num_layers));

  Attention attention;
  attention.q_heads = keys.count("num_attention_heads", kMaxHeads, otherwise(defaults.q_heads));
  const bool takes_default = defaults.kv_heads > 0 && !keys.contains("num_key_value_heads");
  const int kv_heads = takes_default ? defaults.kv_heads : attention.q_heads;
  attention.kv_heads =
      defaults.ignores_head_keys ? kv_heads : keys.count("num_key_value_heads", kMaxHeads, kv_heads);
  // A null is no silence: it asks for the width over the heads.
  attention.head_dim =
      read_head_dim(keys, spec.hidden_size, attention.q_heads, defaults.ignores_head_keys ? "" : "head_dim",
                    "num_attention_heads", keys.contains("head_dim") ? 0 : defaults.head_dim);
  attention.scale = 1.0 / std::sqrt(static_cast<double>(attention.head_dim));
  check_heads(keys, attention, "num_key_value_heads");

  Ffn ffn;
  ffn.activation = activation_of(keys.text("hidden_act", "silu"));
  fill_layers(keys, attention, ffn, static_cast<std::size_t>(num_layers),
              otherwise(defaults.intermediate_size), spec);
  note_assumed(keys, defaults, spec);
  const double share = defaults.turned_share > 0 ? defaults.turned_share : 1.0;
  read_config_rope(keys, attention.head_dim, share, defaults.rope_theta, defaults.context_tokens, spec);
  // Where transformers turns whole heads whatever partial_rotary_factor says, vLLM turns the part.
  if (defaults.turned_share <= 0 && spec.rope.rotary_dim != attention.head_dim)
    add_trait(spec, Trait::kOwnRope);
  const std::string dtype = keys.text(keys.has("dtype") ? "dtype" : "torch_dtype", "");
  spec.declared_dtype = dtype_from_config(dtype);
  return spec;
}

void read_attention_bias(KeyReader& keys, ModelSpec& spec, bool otherwise) {
  const bool has_bias = keys.flag("attention_bias", otherwise);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_bias;
    attention.has_output_bias = has_bias;
  });
}

void enter_layer(SpecWriter& writer, int layer) {
  writer.enter(fmt::format("model.layers.{}.", layer), layer);
}

void write_embedding(SpecWriter& writer) {
  writer.enter("");
  writer.role(Role::kTokenEmbedding, {writer.spec().vocab_size, writer.width()});
  if (writer.spec().rope.rotary_dim <= 0) return;
  // GGUF stores llama3's scaling as one divisor per frequency; it is no parameter of the model.
  writer.role(Role::kRopeFrequencies, {writer.spec().rope.rotary_dim / 2});
  Weight& frequencies = writer.spec().weights.back();
  frequencies.hf_name.clear();
  frequencies.is_optional = true;
  frequencies.is_parameter = false;
}

void write_head(SpecWriter& writer, const DecoderStyle& style) {
  writer.enter("");
  writer.role(Role::kOutputNorm, {writer.width()});
  if (style.has_norm_bias) writer.role(Role::kOutputNormBias, {writer.width()});
  if (!writer.spec().ties_embeddings)
    writer.role(Role::kOutputHead, {writer.spec().vocab_size, writer.width()});
  if (style.has_head_bias) writer.role(Role::kOutputHeadBias, {writer.spec().vocab_size});
}

namespace {

void write_norms(SpecWriter& writer, const Layer& layer, const DecoderStyle& style) {
  writer.role(Role::kAttentionNorm, {writer.width()});
  if (style.has_norm_bias) writer.role(Role::kAttentionNormBias, {writer.width()});
  if (style.has_post_norms) {
    writer.role(Role::kAttentionPostNorm, {writer.width()});
    writer.role_as(Role::kFfnNorm, "pre_feedforward_layernorm.weight", {writer.width()});
    writer.role(Role::kFfnPostNorm, {writer.width()});
    return;
  }
  if (!style.has_ffn_norm || layer.ffn.kind == FfnKind::kNone) return;
  writer.role(Role::kFfnNorm, {writer.width()});
  if (style.has_norm_bias) writer.role(Role::kFfnNormBias, {writer.width()});
}

}  // namespace

void write_decoder(ModelSpec& spec, const DecoderStyle& style) {
  SpecWriter writer(spec);
  write_embedding(writer);
  if (style.learned_positions)
    writer.role(Role::kPositionEmbedding, {*style.learned_positions, writer.width()});
  const std::vector<Layer> layers = spec.layers;  // the writer appends to the spec that holds them
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const Layer& layer = layers[static_cast<std::size_t>(i)];
    enter_layer(writer, i);
    if (style.norms)
      style.norms(writer, layer, i);
    else
      write_norms(writer, layer, style);
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) write_attention(writer, *attention);
    if (const auto* latent = std::get_if<Latent>(&layer.mixer)) write_latent(writer, *latent, style.latent);
    if (style.extras) style.extras(writer, layer, i);
    write_any_ffn(writer, layer.ffn, style.moe);
  }
  write_head(writer, style);
}

}  // namespace plimsoll::model
