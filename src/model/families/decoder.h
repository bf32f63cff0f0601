// SPDX-License-Identifier: Apache-2.0
// What most decoders share: embedding, then layers of (norm, mixer, norm, feed-forward), then a norm and a
// head. A family states what transformers assumes where its configs are silent, reads the common figures,
// changes what is its own, and lists the weights. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "artifact/artifact.h"
#include "model/families/spec_writer.h"
#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

/// What transformers assumes where a config is silent.
struct DecoderDefaults {
  double norm_eps = 1e-6;
  double rope_theta = 10000.0;
  std::int64_t context_tokens = 2048;
  bool ties_embeddings = false;
  int head_dim = 0;  // 0: hidden_size / num_attention_heads
  int kv_heads = 0;  // where the key is absent (a null means the attention heads); 0: the attention heads
  // The text_config of a wrapper may leave out figures that are the defaults; a config of its own may not,
  // but for the figures of has_class_defaults families, whose published configs do.
  int hidden_size = 4096;
  int intermediate_size = 11'008;
  int num_layers = 32;
  int q_heads = 32;
  std::int64_t vocab_size = 32'000;
  bool has_class_defaults = false;
  bool ignores_head_keys =
      false;  // every head has its own keys and the width's share, whatever the config says
  bool derives_intermediate_size = false;  // from the width: leaving it out is how its configs are written
  double turned_share = 0.0;  // of a head where the config states none; 0: of others than whole heads nothing
                              // is known
};

/// Reads the common keys of a config into a spec whose layers are all alike and have no bias. A per-layer
/// list of intermediate_size is taken layer by layer. Weights are not listed yet. Errors are kept in `keys`.
ModelSpec read_config_decoder(KeyReader& keys, const DecoderDefaults& defaults);

/// The same from GGUF keys; biases and a head of its own are seen in the tensor list. `router`: how mixtures
/// of this architecture choose; without it experts are an error.
ModelSpec read_gguf_decoder(KeyReader& keys, const artifact::Artifact& artifact,
                            const std::optional<Router>& router = std::nullopt);

/// Makes the layers behind the dense prefix mixtures where the keys count experts; their feed-forwards are
/// dense so far.
void read_gguf_experts(KeyReader& keys, const Router& router, ModelSpec& spec);

/// Only what all architectures' keys share: width, vocabulary, number of layers (empty ones), declared type.
ModelSpec read_gguf_frame(KeyReader& keys, const artifact::Artifact& artifact);

/// By transformers' name for it. kOther where it is not known: an engine refuses it, sizes do not depend on
/// it.
Activation activation_of(std::string_view name);

/// Adds a trait once.
void add_trait(ModelSpec& spec, Trait trait);

/// Changes the attention of every layer.
template <class Change>
void for_each_attention(ModelSpec& spec, Change change) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (auto* attention = std::get_if<Attention>(&spec.layers[i].mixer)) change(*attention, i);
}

/// Sets the windows by transformers' layer_types ("full_attention", "sliding_attention",
/// "chunked_attention"); false when the config has none.
bool read_layer_types(KeyReader& keys, std::optional<std::int64_t> window, ModelSpec& spec);

/// Every `pattern`-th layer is full, the others have the window.
void set_window_pattern(ModelSpec& spec, std::int64_t pattern, std::int64_t window);

/// Biases of q, k, v and o where the config's attention_bias says so.
void read_attention_bias(KeyReader& keys, ModelSpec& spec, bool otherwise = false);

/// Which layers are mixtures of experts, by whatever keys the config has: mlp_layer_types, moe_layer_freq
/// (number or list), first_k_dense_replace, decoder_sparse_step and mlp_only_layers, moe_layers and
/// interleave_moe_layer_step, moe_layer_start_index / _end_index / _interval. All when it has none.
std::vector<bool> read_moe_layers(KeyReader& keys, std::size_t num_layers);

/// What transformers assumes of experts where a config is silent; 0: the key must be there.
struct MoeDefaults {
  int experts = 0, experts_per_token = 0, intermediate_size = 0, shared_experts = 0;
};
constexpr std::int64_t kMaxSharedWidth = kMaxWidth * 16;  // believed of all shared experts together
/// The mixture's figures: experts, per token, widths, shared experts (whose width is one routed expert's each
/// unless shared_expert_intermediate_size says otherwise). `kind` is kMoe.
Ffn read_moe(KeyReader& keys, const Ffn& dense, const MoeDefaults& defaults = {});
/// DeepSeek V3's choice: sigmoid scores, corrected by a bias, the best groups by their two best experts.
/// The figures are what the class assumes where the config is silent.
Router read_grouped_router(KeyReader& keys, double scale, int groups = 1, int groups_per_token = 1);
/// Gives the layers that read_moe_layers names the mixture `moe`.
void set_moe_layers(KeyReader& keys, const Ffn& moe, ModelSpec& spec);
/// By mlp_layer_types or first_k_dense_replace; where a config has neither, the first `prefix` are dense.
void set_moe_behind(KeyReader& keys, const Ffn& moe, std::size_t prefix, ModelSpec& spec);

/// How the plain decoder's weights are laid out.
struct DecoderStyle {
  bool has_norm_bias = false;   // LayerNorm with weight and bias
  bool has_ffn_norm = true;     // false: parallel blocks with one norm
  bool has_post_norms = false;  // two more norms, behind attention and feed-forward (Gemma 2)
  bool has_head_bias = false;
  std::optional<std::int64_t> learned_positions = {};  // rows of a position embedding
  MoeStyle moe = {};
  LatentStyle latent = {};
  /// What stands in a layer besides norms, attention, latent and feed-forward: states, extra norms.
  std::function<void(SpecWriter&, const Layer&, int)> extras = {};
  /// Replaces the norms of a layer: (before attention, behind attention, behind the feed-forward are its
  /// own).
  std::function<void(SpecWriter&, const Layer&, int)> norms = {};
};
/// Lists embedding, layers, final norm and head. Layers with a state write it through `extras`.
void write_decoder(ModelSpec& spec, const DecoderStyle& style = {});
/// The parts by themselves, for families with layers of their own.
void write_embedding(SpecWriter& writer);
void write_head(SpecWriter& writer, const DecoderStyle& style = {});
/// "model.layers.3." and layer 3.
void enter_layer(SpecWriter& writer, int layer);

}  // namespace plimsoll::model
