// SPDX-License-Identifier: Apache-2.0
// The language models inside Qwen's vision and audio models, whose own classes assume other figures than
// those of the text models. Source: transformers' Qwen2VLTextConfig, Qwen2_5OmniTextConfig,
// Qwen3VLTextConfig, Qwen3VLMoeTextConfig, Qwen3OmniMoeTextConfig.
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

ModelSpec finish_qwen2(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec = read_unchecked_decoder(keys, defaults);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qkv_bias = true; });
  read_qwen_windows(keys, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec read_qwen3(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec = read_unchecked_decoder(keys, defaults);
  read_attention_bias(keys, spec);
  set_qk_norm(spec);
  return spec;
}

ModelSpec finish_qwen3_moe(KeyReader& keys, ModelSpec spec, const MoeDefaults& defaults) {
  set_moe_layers(keys, read_moe(keys, spec.layers.front().ffn, defaults), spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

}  // namespace

ModelSpec qwen2_vl_from_config(KeyReader& keys) {
  return finish_qwen2(keys, {.norm_eps = 1e-5,
                             .rope_theta = 1e6,
                             .context_tokens = 32'768,
                             .kv_heads = 8,
                             .hidden_size = 8192,
                             .intermediate_size = 29'568,
                             .num_layers = 80,
                             .q_heads = 64,
                             .vocab_size = 152'064,
                             .has_class_defaults = true});
}

ModelSpec qwen2_omni_from_config(KeyReader& keys) {
  return finish_qwen2(keys, {.rope_theta = 1e6,
                             .context_tokens = 32'768,
                             .kv_heads = 4,
                             .hidden_size = 3584,
                             .intermediate_size = 18'944,
                             .num_layers = 28,
                             .q_heads = 28,
                             .vocab_size = 152'064,
                             .has_class_defaults = true});
}

ModelSpec qwen3_vl_from_config(KeyReader& keys) {
  ModelSpec spec = read_qwen3(keys, {.rope_theta = 500'000,
                                     .context_tokens = 128'000,
                                     .head_dim = 128,
                                     .kv_heads = 32,
                                     .intermediate_size = 22'016,
                                     .vocab_size = 151'936,
                                     .has_class_defaults = true});
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen3_vl_moe_from_config(KeyReader& keys) {
  return finish_qwen3_moe(keys,
                          read_qwen3(keys, {.rope_theta = 500'000,
                                            .context_tokens = 128'000,
                                            .head_dim = 128,
                                            .kv_heads = 16,
                                            .hidden_size = 2048,
                                            .intermediate_size = 5632,
                                            .num_layers = 24,
                                            .q_heads = 16,
                                            .vocab_size = 151'936,
                                            .has_class_defaults = true}),
                          {60, 4, 1408});
}

ModelSpec qwen3_omni_moe_from_config(KeyReader& keys) {
  return finish_qwen3_moe(keys,
                          read_qwen3(keys, {.rope_theta = 1e6,
                                            .context_tokens = 32'768,
                                            .kv_heads = 4,
                                            .hidden_size = 2048,
                                            .intermediate_size = 18'944,
                                            .num_layers = 28,
                                            .q_heads = 28,
                                            .vocab_size = 3584,
                                            .has_class_defaults = true}),
                          {128, 8, 768});
}

}  // namespace plimsoll::model
