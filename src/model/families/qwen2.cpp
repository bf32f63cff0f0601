// SPDX-License-Identifier: Apache-2.0
// Qwen 1.5, 2 and 2.5, dense: biases on q, k, v; upper layers may have a window. Source: transformers'
// Qwen2Config.
#include "model/families/decoder.h"
#include "model/families/families.h"

namespace plimsoll::model {

// Windows from layer max_window_layers on, when use_sliding_window says so or layer_types lists them.
void read_qwen_windows(KeyReader& keys, ModelSpec& spec) {
  std::optional<std::int64_t> window;
  if (keys.flag("use_sliding_window", false)) window = keys.integer("sliding_window", 1, kMaxContext, 4096);
  if (read_layer_types(keys, window, spec)) return;
  const std::int64_t first = keys.integer("max_window_layers", 0, kMaxLayers, 28);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    if (static_cast<std::int64_t>(i) >= first) attention.window_tokens = window;
  });
}

ModelSpec qwen2_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-6,
                                              .context_tokens = 32'768,
                                              .kv_heads = 32,
                                              .intermediate_size = 22'016,
                                              .vocab_size = 151'936});
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qkv_bias = true; });
  read_qwen_windows(keys, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen2_from_gguf(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec = read_gguf_decoder(keys, artifact);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qkv_bias = true; });
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen3_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-6,
                                              .context_tokens = 32'768,
                                              .head_dim = 128,
                                              .kv_heads = 32,
                                              .intermediate_size = 22'016,
                                              .vocab_size = 151'936});
  read_attention_bias(keys, spec);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qk_norm = true; });
  read_qwen_windows(keys, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen3_from_gguf(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec = read_gguf_decoder(keys, artifact);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qk_norm = true; });
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
