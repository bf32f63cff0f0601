// SPDX-License-Identifier: Apache-2.0
// MiMo-V2-Flash: sliding layers with sinks and twice the KV heads among full ones, values narrower than keys,
// mixtures behind a dense first layer. Source: transformers' MiMoV2FlashConfig and the published config's
// swa_* keys; for the prediction layers vLLM's mimo_v2_mtp.py.
#include <fmt/format.h>

#include <algorithm>

#include "model/families/families.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

// layer_types, hybrid_layer_pattern (1: sliding), or every sixth and the first full.
std::vector<bool> read_sliding(KeyReader& keys, std::size_t num_layers) {
  std::vector<bool> sliding(num_layers);
  const auto words = read_layer_words(keys, "layer_types", num_layers);
  const bool has_pattern = keys["hybrid_layer_pattern"].is_array();
  std::vector<std::int64_t> pattern;
  if (has_pattern) pattern = keys.per_layer("hybrid_layer_pattern", num_layers, 0, 1);
  for (std::size_t i = 0; i < num_layers; ++i)
    sliding[i] = !words.empty() ? words[i] == "sliding_attention"
                 : has_pattern  ? pattern[i] == 1
                                : i != 0 && (i + 1) % 6 != 0;
  return sliding;
}

// A dense layer with a window, behind the projection that joins it to the model.
void write_mtp(SpecWriter& writer, const Layer& layer, std::int64_t count, bool has_sinks) {
  const std::int64_t width = writer.width();
  const auto& attention = std::get<Attention>(layer.mixer);
  writer.override_group(WeightGroup::kMtp);
  for (int i = 0; i < static_cast<int>(count); ++i) {
    writer.enter(fmt::format("model.mtp.layers.{}.", i), static_cast<int>(writer.spec().layers.size()) + i);
    for (const char* name : {"enorm", "hnorm", "input_layernorm", "pre_mlp_layernorm", "final_layernorm"})
      writer.norm(name, width);
    writer.linear(WeightGroup::kMtp, "eh_proj", width, 2 * width);
    write_attention(writer, attention);
    if (has_sinks) writer.add(WeightGroup::kMtp, "self_attn.attention_sink_bias", {attention.q_heads});
    write_ffn(writer, layer.ffn);
    writer.spec().mtp_layers.push_back(layer);
  }
  writer.end_override();
}

}  // namespace

ModelSpec mimo_v2_flash_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .rope_theta = 5'000'000.0,
                                              .context_tokens = 131'072,
                                              .head_dim = 192,
                                              .kv_heads = 4,
                                              .hidden_size = 4096,
                                              .intermediate_size = 16'384,
                                              .num_layers = 48,
                                              .q_heads = 64,
                                              .vocab_size = 152'576,
                                              .has_class_defaults = true});
  const std::vector<bool> sliding = read_sliding(keys, spec.layers.size());
  const std::int64_t window = keys.integer("sliding_window", 1, kMaxContext, 128);
  const bool has_bias = keys.flag("attention_bias", false);
  const int value_dim = keys.count("v_head_dim", kMaxHeadDim, 128);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.has_qkv_bias = has_bias;
    attention.value_head_dim = value_dim;
    if (!sliding[i]) return;
    attention.window_tokens = window;
    attention.q_heads = keys.count("swa_num_attention_heads", kMaxHeads, attention.q_heads);
    attention.kv_heads = keys.count("swa_num_key_value_heads", kMaxHeads, 2 * attention.kv_heads);
    attention.head_dim = keys.count("swa_head_dim", kMaxHeadDim, attention.head_dim);
    attention.value_head_dim = keys.count("swa_v_head_dim", kMaxHeadDim, value_dim);
  });
  const Ffn dense = spec.layers.front().ffn, moe = read_moe(keys, dense, {256, 8, 2048});
  if (keys["mlp_layer_types"].is_array() || keys.has("moe_layer_freq"))
    set_moe_layers(keys, moe, spec);
  else
    for (std::size_t i = 1; i < spec.layers.size(); ++i) spec.layers[i].ffn = moe;
  const bool sliding_sinks = keys.flag("add_swa_attention_sink_bias", true);
  const bool full_sinks = keys.flag("add_full_attention_sink_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_sinks = attention.window_tokens ? sliding_sinks : full_sinks;
  });
  for (const Trait trait : {Trait::kOwnScales, Trait::kOwnRope}) add_trait(spec, trait);
  write_decoder(spec, {.moe = {.score_bias = "mlp.gate.e_score_correction_bias"},
                       .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                         const auto& attention = std::get<Attention>(layer.mixer);
                         if (attention.has_sinks)
                           writer.role_as(Role::kAttentionSinks, "self_attn.attention_sink_bias",
                                          {attention.q_heads});
                       }});
  spec.has_file_names = true;
  const auto window_layer = std::find(sliding.begin(), sliding.end(), true) - sliding.begin();
  if (const auto i = static_cast<std::size_t>(window_layer); i < spec.layers.size()) {
    SpecWriter writer(spec);
    write_mtp(writer, {spec.layers[i].mixer, dense},
              keys.integer("num_nextn_predict_layers", 0, kMaxMtpLayers, 0), sliding_sinks);
  }
  return spec;
}

}  // namespace plimsoll::model
