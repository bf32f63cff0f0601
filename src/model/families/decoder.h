// SPDX-License-Identifier: Apache-2.0
// What most decoders share: embedding, then layers of (norm, attention, norm, gated feed-forward), then a
// norm and a head. A family states its defaults and changes what is its own. Pure.
#pragma once

#include <cstdint>

#include "artifact/artifact.h"
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
  // The text_config of a wrapper may leave out figures that are the defaults; a config of its own may not.
  int hidden_size = 4096;
  int intermediate_size = 11'008;
  int num_layers = 32;
  int q_heads = 32;
  std::int64_t vocab_size = 32'000;
};

/// Reads the common keys of a config into a spec whose layers are all alike and have no bias.
/// Errors are kept in `keys`.
ModelSpec read_config_decoder(KeyReader& keys, const DecoderDefaults& defaults);

/// The same from GGUF keys; biases and a head of its own are seen in the tensor list.
ModelSpec read_gguf_decoder(KeyReader& keys, const artifact::Artifact& artifact);

/// Changes the attention of every layer.
template <class Change>
void for_each_attention(ModelSpec& spec, Change change) {
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (auto* attention = std::get_if<Attention>(&spec.layers[i].mixer)) change(*attention, i);
}

/// Sets the windows by transformers' layer_types ("full_attention", "sliding_attention"); false when the
/// config has none.
bool read_layer_types(KeyReader& keys, std::optional<std::int64_t> window, ModelSpec& spec);

}  // namespace plimsoll::model
