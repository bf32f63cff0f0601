// SPDX-License-Identifier: Apache-2.0
// Parts that families with layers of their own share: walking the layers, attention under other names or
// fused, windows. What a layer holds stays with the family. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/decoder.h"

namespace plimsoll::model {

/// Embedding, `body(writer, layer, index)` for every layer under "model.layers.N.", final norm and head.
template <class Body>
void write_layers(ModelSpec& spec, const DecoderStyle& style, Body body) {
  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;  // the writer appends to the spec that holds them
  for (std::size_t i = 0; i < layers.size(); ++i) {
    enter_layer(writer, static_cast<int>(i));
    body(writer, layers[i], static_cast<int>(i));
  }
  write_head(writer, style);
}

/// Where a model with names of its own keeps its parts.
struct BlockNames {
  std::string_view embedding = "transformer.wte.weight";
  std::string_view layers = "transformer.h.";
  std::string_view norm = "transformer.ln_f";
  std::string_view head = "lm_head";
  bool has_norm_bias = true;
  bool has_head_bias = false;
};

/// The same under those names. A tied head is not listed, its bias is.
template <class Body>
void write_blocks(ModelSpec& spec, const BlockNames& names, Body body) {
  SpecWriter writer(spec);
  writer.enter("");
  writer.role_as(Role::kTokenEmbedding, names.embedding, {spec.vocab_size, writer.width()});
  const std::vector<Layer> layers = spec.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    writer.enter(std::string(names.layers) + std::to_string(i) + ".", static_cast<int>(i));
    body(writer, layers[i], static_cast<int>(i));
  }
  writer.enter("");
  if (!names.norm.empty())
    writer.norm_as(Role::kOutputNorm, names.norm, writer.width(),
                   role_if(names.has_norm_bias, Role::kOutputNormBias));
  const std::string head(names.head);
  if (!spec.ties_embeddings)
    writer.role_as(Role::kOutputHead, head + ".weight", {spec.vocab_size, writer.width()});
  if (names.has_head_bias) writer.role_as(Role::kOutputHeadBias, head + ".bias", {spec.vocab_size});
}

struct AttentionNames {
  std::string_view query = "self_attn.q_proj", key = "self_attn.k_proj", value = "self_attn.v_proj",
                   output = "self_attn.o_proj";
};
/// q, k, v and o as linear layers with the biases that `attention` has. No norms.
void write_named_attention(SpecWriter& writer, const Attention& attention, const AttentionNames& names);
/// up and down of a feed-forward without a gate, with the biases that it has.
void write_plain_ffn(SpecWriter& writer, const Ffn& ffn, std::string_view up, std::string_view down);
/// q, k and v as one matrix [q + k + v, width], and o.
void write_fused_attention(SpecWriter& writer, const Attention& attention, std::string_view qkv,
                           std::string_view output);
/// gate and up as one matrix [2 x inner, width], and down, under mlp.
void write_fused_ffn(SpecWriter& writer, const Ffn& ffn);
/// Experts w1, w3 [inner, width] and w2 [width, inner] and their router under block_sparse_moe (Mixtral).
void write_mixtral_experts(SpecWriter& writer, const Ffn& ffn);
/// One tensor that stacks a matrix of every expert: [experts, rows, columns]. Its name has no number.
void write_stacked(SpecWriter& writer, std::string_view name, std::vector<std::int64_t> shape, int experts);
/// The same for the engine's use; `is_turned`: the matrices are [in, out].
void write_stacked_as(SpecWriter& writer, Role role, std::string_view name, std::vector<std::int64_t> shape,
                      int experts, bool is_turned = false);
/// A gated feed-forward of that width, the shared expert of a mixture, under its own prefix.
void write_shared_as(SpecWriter& writer, std::string_view prefix, std::int64_t inner);
/// A dense one under another prefix than mlp.
void write_gated_as(SpecWriter& writer, std::string_view prefix, std::int64_t inner);
/// Makes every layer a mixture whose experts are as wide as intermediate_size; the class's figures where the
/// config is silent.
void set_plain_experts(KeyReader& keys, int experts, int per_token, ModelSpec& spec);

/// The window that sliding_window states: none where it is null, `otherwise` (0: none) where it is absent.
std::optional<std::int64_t> read_window(KeyReader& keys, std::int64_t otherwise);
/// Gives every attention that window.
void set_windows(ModelSpec& spec, std::optional<std::int64_t> window);
/// As layer_types say; without them every `pattern`-th layer is full (0: all have the window).
void read_windows(KeyReader& keys, std::optional<std::int64_t> window, std::int64_t pattern, ModelSpec& spec);
/// Biases of gate, up and down in every layer.
void set_ffn_bias(ModelSpec& spec, bool has_bias);
/// Queries and keys are normalized head by head, in every layer.
void set_qk_norm(ModelSpec& spec);
/// The usual reader, and the trait that keeps engines from a model whose arithmetic was not held against a
/// reference.
ModelSpec read_unchecked_decoder(KeyReader& keys, const DecoderDefaults& defaults);
/// What the class takes where the config names no activation.
void assume_activation(KeyReader& keys, Activation activation, ModelSpec& spec);
/// Where the config states no scaling the class takes one of its own, which is not read here.
void refuse_assumed_rope(KeyReader& keys, ModelSpec& spec);
/// Layers without a window have no positions where the config states one at all.
void turn_windows_only(std::optional<std::int64_t> window, ModelSpec& spec);
/// Two norms in front of attention and feed-forward under the usual names, with bias or not.
void write_two_norms(SpecWriter& writer, bool has_bias = false);

/// Granite's multipliers of embedding, residual, attention and logits.
void read_granite_scales(KeyReader& keys, ModelSpec& spec);
/// Granite's experts, stacked, and the shared one where there is one.
void write_granite_experts(SpecWriter& writer, const Ffn& ffn);
/// Hunyuan's norms on queries and keys, under its names for them.
void write_hunyuan_norms(SpecWriter& writer, const Attention& attention);
/// Its biases, and the norms' place behind the rope.
void read_hunyuan_attention(KeyReader& keys, ModelSpec& spec);

}  // namespace plimsoll::model
