// SPDX-License-Identifier: Apache-2.0
// Qwen's mixtures of experts: Qwen 1.5 MoE and 2 MoE (biases, a gated shared expert) and Qwen 3 MoE (norms on
// q and k, no shared expert). Source: transformers' Qwen2MoeConfig and Qwen3MoeConfig.
#include "model/families/decoder.h"
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

// layer_types; without them every second layer of the lower ones, where Qwen 2's are the upper ones.
void read_moe_windows(KeyReader& keys, ModelSpec& spec) {
  std::optional<std::int64_t> window;
  if (keys.flag("use_sliding_window", false)) window = keys.integer("sliding_window", 1, kMaxContext, 4096);
  if (read_layer_types(keys, window, spec)) return;
  const std::int64_t end = keys.integer("max_window_layers", 0, kMaxLayers, 28);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    if (i % 2 == 0 && static_cast<std::int64_t>(i) < end) attention.window_tokens = window;
  });
}

}  // namespace

ModelSpec qwen2_moe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 32'768,
                                              .kv_heads = 16,
                                              .hidden_size = 2048,
                                              .intermediate_size = 5632,
                                              .num_layers = 24,
                                              .q_heads = 16,
                                              .vocab_size = 151'936,
                                              .has_class_defaults = true});
  const bool has_bias = keys.flag("qkv_bias", true);
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_bias; });
  read_moe_windows(keys, spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {60, 4, 1408});
  moe.shared_intermediate_size =
      static_cast<int>(keys.integer("shared_expert_intermediate_size", 1, kMaxWidth, 5632));
  moe.shared_experts = 1;
  moe.router.is_normalized = keys.flag("norm_topk_prob", false);
  set_moe_layers(keys, moe, spec);
  write_decoder(spec, {.moe = {.shared = "mlp.shared_expert.", .has_shared_gate = true}});
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen3_moe_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 32'768,
                                              .kv_heads = 4,
                                              .hidden_size = 2048,
                                              .intermediate_size = 6144,
                                              .num_layers = 24,
                                              .vocab_size = 151'936,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qk_norm = true; });
  if (keys.flag("use_sliding_window", false)) set_windows(spec, read_window(keys, 4096));
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {128, 8, 768});
  moe.router.is_normalized = keys.flag("norm_topk_prob", false);
  set_moe_layers(keys, moe, spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen3_moe_from_gguf(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec = read_gguf_decoder(keys, artifact, Router{.is_normalized = true});
  set_qk_norm(spec);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
