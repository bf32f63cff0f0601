// SPDX-License-Identifier: Apache-2.0
#include "model/families/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

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

Activation read_activation(KeyReader& keys) {
  const std::string text = keys.text("hidden_act", "silu");
  for (const auto& [name, activation] : kActivations)
    if (name == text) return activation;
  keys.add_error(ErrorCode::kUnsupported, "hidden_act",
                 fmt::format("reading the model: unknown activation \"{}\"", text));
  return Activation::kSilu;
}

// Heads share keys and values evenly, and the width splits into heads.
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
  if (hidden_size % heads != 0)
    keys.add_error(
        ErrorCode::kMalformed, heads_key,
        fmt::format("reading the model: a width of {} does not split into {} heads", hidden_size, heads));
  return std::max(1, hidden_size / heads);
}

void repeat(ModelSpec& spec, int num_layers, const Attention& attention, const Ffn& ffn) {
  spec.layers.assign(static_cast<std::size_t>(num_layers), Layer{attention, ffn});
}

std::int64_t gguf_vocab(KeyReader& keys, const artifact::Artifact& artifact) {
  if (keys.has("vocab_size")) return keys.integer("vocab_size", 1, kMaxVocab);
  const artifact::Tensor* embedding = artifact.find("token_embd.weight");
  if (embedding && embedding->shape.size() == 2) return embedding->shape[0];
  const std::size_t tokens = artifact.config()["tokenizer.ggml.tokens"].size();
  if (tokens == 0)
    keys.add_error(ErrorCode::kMalformed, "vocab_size",
                   "reading the model: nothing states the size of the vocabulary");
  return static_cast<std::int64_t>(tokens);
}

// general.file_type is llama.cpp's number of the scheme; only the plain ones are one dtype.
std::optional<DType> gguf_dtype(const Json& metadata) {
  switch (metadata["general.file_type"].as_integer().value_or(-1)) {
    case 0:
      return DType::kF32;
    case 1:
      return DType::kF16;
    case 32:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

}  // namespace

ModelSpec read_config_decoder(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec;
  const auto otherwise = [&](std::int64_t value) {
    return keys.is_nested() ? std::optional(value) : std::nullopt;
  };
  spec.hidden_size = keys.count("hidden_size", kMaxWidth, otherwise(defaults.hidden_size));
  spec.vocab_size = keys.integer("vocab_size", 1, kMaxVocab, otherwise(defaults.vocab_size));
  spec.norm_eps = keys.positive("rms_norm_eps", defaults.norm_eps);
  spec.ties_embeddings = keys.flag("tie_word_embeddings", defaults.ties_embeddings);
  const int num_layers = keys.count("num_hidden_layers", kMaxLayers, otherwise(defaults.num_layers));

  Attention attention;
  attention.q_heads = keys.count("num_attention_heads", kMaxHeads, otherwise(defaults.q_heads));
  const bool takes_default = defaults.kv_heads > 0 && !keys.contains("num_key_value_heads");
  attention.kv_heads =
      keys.count("num_key_value_heads", kMaxHeads, takes_default ? defaults.kv_heads : attention.q_heads);
  attention.head_dim = read_head_dim(keys, spec.hidden_size, attention.q_heads, "head_dim",
                                     "num_attention_heads", defaults.head_dim);
  attention.scale = 1.0 / std::sqrt(static_cast<double>(attention.head_dim));
  check_heads(keys, attention, "num_key_value_heads");

  Ffn ffn;
  ffn.intermediate_size = keys.count("intermediate_size", kMaxWidth, otherwise(defaults.intermediate_size));
  ffn.activation = read_activation(keys);
  repeat(spec, num_layers, attention, ffn);

  read_config_rope(keys, attention.head_dim, defaults.rope_theta, defaults.context_tokens, spec);
  const std::string dtype = keys.text(keys.has("dtype") ? "dtype" : "torch_dtype", "");
  spec.declared_dtype = dtype_from_config(dtype);
  return spec;
}

ModelSpec read_gguf_decoder(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec;
  spec.hidden_size = keys.count("embedding_length", kMaxWidth);
  spec.vocab_size = gguf_vocab(keys, artifact);
  spec.norm_eps = keys.positive("attention.layer_norm_rms_epsilon", 1e-5);
  // Only the tensor list says whether the head is its own; without any tensor nothing is known to be shared.
  spec.ties_embeddings = artifact.find("token_embd.weight") && !artifact.find("output.weight");
  const int num_layers = keys.count("block_count", kMaxLayers);

  Attention attention;
  attention.q_heads = keys.count("attention.head_count", kMaxHeads);
  attention.kv_heads = keys.count("attention.head_count_kv", kMaxHeads, attention.q_heads);
  attention.head_dim = read_head_dim(keys, spec.hidden_size, attention.q_heads, "attention.key_length",
                                     "attention.head_count", 0);
  if (keys.count("attention.value_length", kMaxHeadDim, attention.head_dim) != attention.head_dim)
    keys.add_error(ErrorCode::kUnsupported, "attention.value_length",
                   "reading the model: keys and values of different widths are not read here");
  attention.scale = 1.0 / std::sqrt(static_cast<double>(attention.head_dim));
  attention.has_qkv_bias = artifact.find("blk.0.attn_q.bias") != nullptr;
  attention.has_output_bias = artifact.find("blk.0.attn_output.bias") != nullptr;
  if (keys.has("attention.sliding_window"))
    attention.window_tokens = keys.integer("attention.sliding_window", 1, kMaxContext);
  check_heads(keys, attention, "attention.head_count_kv");
  if (keys.integer("expert_count", 0, kMaxHeads, 0) > 0)
    keys.add_error(ErrorCode::kUnsupported, "expert_count",
                   "reading the model: experts are not read in this architecture");

  Ffn ffn;
  ffn.intermediate_size = keys.count("feed_forward_length", kMaxWidth);
  ffn.has_bias = artifact.find("blk.0.ffn_up.bias") != nullptr;
  repeat(spec, num_layers, attention, ffn);

  read_gguf_rope(keys, attention.head_dim, spec);
  spec.declared_dtype = gguf_dtype(artifact.config());
  if (const auto* name = artifact.config()["general.name"].as_string()) spec.name = *name;
  return spec;
}

bool read_layer_types(KeyReader& keys, std::optional<std::int64_t> window, ModelSpec& spec) {
  const Json& types = keys["layer_types"];
  if (types.is_null()) return false;
  if (!types.is_array() || types.size() != spec.layers.size()) {
    keys.add_error(ErrorCode::kMalformed, "layer_types",
                   fmt::format("reading the model: layer_types has {} entries for {} layers", types.size(),
                               spec.layers.size()));
    return true;
  }
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    const std::string* type = types.items()[i].as_string();
    if (type && *type == "sliding_attention")
      attention.window_tokens = window;
    else if (type && *type == "full_attention")
      attention.window_tokens.reset();
    else
      keys.add_error(
          ErrorCode::kUnsupported, "layer_types",
          fmt::format("reading the model: layer {} is of the unknown type {}", i, dump(types.items()[i])));
  });
  return true;
}

}  // namespace plimsoll::model
