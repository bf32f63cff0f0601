// SPDX-License-Identifier: Apache-2.0
// GLM 4.5 to 4.7 (grouped attention), GLM 4.7 Flash (latent attention), GLM 5 (sparse latent attention) and
// dots.llm1: mixtures with a dense prefix and shared experts. Source: transformers' Glm4MoeConfig,
// Glm4MoeLiteConfig, GlmMoeDsaConfig, Dots1Config; prediction layers as the published files hold them.
#include <algorithm>
#include <utility>

#include "model/families/deepseek.h"
#include "model/families/families.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

constexpr MoeStyle kMoeStyle{.score_bias = "mlp.gate.e_score_correction_bias"};

Latent read_glm_latent(KeyReader& keys, const ModelSpec& spec, int q_lora_rank) {
  Latent latent = read_latent(keys, spec);
  if (!keys.contains("q_lora_rank")) latent.q_lora_rank = q_lora_rank;
  if (!keys.has("qk_nope_head_dim")) latent.qk_nope_head_dim = 192;
  if (!keys.has("v_head_dim")) latent.v_head_dim = 256;
  return latent;
}

int num_mtp_layers(KeyReader& keys, int otherwise) {
  return static_cast<int>(keys.integer("num_nextn_predict_layers", 0, kMaxMtpLayers, otherwise));
}

// Layers that share the choice of one before them have no indexer of their own.
std::vector<bool> read_own_indexers(KeyReader& keys, std::size_t num_layers) {
  std::vector<bool> own(num_layers);
  const auto words = read_layer_words(keys, "indexer_types", num_layers);
  const std::string pattern = keys.text("index_topk_pattern", "");
  const auto step = keys.integer("index_topk_freq", 1, kMaxLayers, 1);
  const auto offset = keys.integer("index_skip_topk_offset", 0, kMaxLayers, 2);
  for (std::size_t i = 0; i < num_layers; ++i)
    if (!words.empty())
      own[i] = words[i] != "shared";
    else if (pattern.size() == num_layers)
      own[i] = pattern[i] != 'S';
    else
      own[i] = std::max<std::int64_t>(static_cast<std::int64_t>(i) - offset + 1, 0) % step == 0;
  return own;
}

ModelSpec read_glm4_moe(KeyReader& keys, std::int64_t vocab_size, std::int64_t context_tokens, bool has_bias,
                        int mtp_layers) {
  const auto width = keys.integer("hidden_size", 1, kMaxWidth, 4096);
  const auto heads = keys.integer("num_attention_heads", 1, kMaxHeads, 96);
  ModelSpec spec = read_config_decoder(
      keys, {.norm_eps = 1e-5,
             .context_tokens = context_tokens,
             .head_dim = static_cast<int>(std::clamp<std::int64_t>(width / heads, 1, kMaxHeadDim)),
             .kv_heads = 8,
             .hidden_size = 4096,
             .intermediate_size = 10'944,
             .num_layers = 46,
             .q_heads = 96,
             .vocab_size = vocab_size,
             .has_class_defaults = true,
             .turned_share = 0.5});
  has_bias = keys.flag("attention_bias", has_bias);
  const bool has_norms = keys.flag("use_qk_norm", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_bias;
    attention.has_qk_norm = has_norms;
  });
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {128, 8, 1408, 1});
  moe.router = read_grouped_router(keys, 1.0);
  set_moe_behind(keys, moe, 1, spec);
  const DecoderStyle style{.moe = kMoeStyle};
  write_decoder(spec, style);
  SpecWriter writer(spec);
  write_mtp_layers(writer, Layer(spec.layers.back()), num_mtp_layers(keys, mtp_layers), style);
  spec.has_file_names = !keys.is_nested();
  return spec;
}

}  // namespace

ModelSpec glm4_moe_from_config(KeyReader& keys) {
  return read_glm4_moe(keys, 151'552, 131'072, false, 1);
}

// The language model of GLM 4.5V.
ModelSpec glm4v_moe_from_config(KeyReader& keys) {
  return read_glm4_moe(keys, 151'424, 65'536, true, 0);
}

ModelSpec glm4_moe_lite_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 202'752,
                                              .head_dim = 64,
                                              .hidden_size = 2048,
                                              .intermediate_size = 10'240,
                                              .num_layers = 47,
                                              .q_heads = 20,
                                              .vocab_size = 154'880,
                                              .has_class_defaults = true});
  set_latent(read_glm_latent(keys, spec, 768), spec);
  read_rope_pairs(keys, spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {64, 4, 1536, 1});
  moe.router = read_grouped_router(keys, 1.8);
  set_moe_behind(keys, moe, 1, spec);
  const DecoderStyle style{.moe = kMoeStyle, .latent = read_latent_bias(keys)};
  write_decoder(spec, style);
  SpecWriter writer(spec);
  write_mtp_layers(writer, Layer(spec.layers.back()), num_mtp_layers(keys, 0), style);
  spec.has_file_names = true;
  return spec;
}

ModelSpec glm_moe_dsa_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 202'752,
                                              .head_dim = 64,
                                              .hidden_size = 6144,
                                              .intermediate_size = 12'288,
                                              .num_layers = 78,
                                              .q_heads = 64,
                                              .vocab_size = 154'880,
                                              .has_class_defaults = true});
  Latent latent = read_glm_latent(keys, spec, 2048);
  latent.indexer = Indexer{.heads = keys.count("index_n_heads", kMaxHeads, 32),
                           .head_dim = keys.count("index_head_dim", kMaxHeadDim, 128),
                           .selected_tokens = keys.count("index_topk", 1 << 30, 2048)};
  set_latent(latent, spec);
  add_trait(spec, Trait::kUnknown);
  const std::vector<bool> own = read_own_indexers(keys, spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (!own[i])
      std::get<Latent>(spec.layers[i].mixer).indexer =
          Indexer{.selected_tokens = latent.indexer->selected_tokens};
  const Ffn dense = spec.layers.front().ffn, moe = read_moe(keys, dense, {256, 8, 2048, 1});
  set_moe_behind(keys, moe, 3, spec);
  const DecoderStyle style{.moe = kMoeStyle, .latent = read_latent_bias(keys)};
  write_decoder(spec, style);
  SpecWriter writer(spec);
  // A prediction layer has an indexer of its own; embedding and head are the decoder's.
  write_mtp_layers(writer, {latent, moe}, num_mtp_layers(keys, 0), style, true);
  spec.has_file_names = true;
  return spec;
}

ModelSpec dots1_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.hidden_size = 4608,
                                              .intermediate_size = 10'944,
                                              .num_layers = 62,
                                              .vocab_size = 152'064,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qk_norm = true; });
  std::optional<std::int64_t> window;
  if (keys.has("sliding_window") || !keys.contains("sliding_window"))
    window = keys.integer("sliding_window", 1, kMaxContext, 4096);
  if (!read_layer_types(keys, window, spec)) {
    const auto first = static_cast<std::size_t>(keys.integer("max_window_layers", 0, kMaxLayers, 62));
    for_each_attention(spec, [&](Attention& attention, std::size_t i) {
      if (i >= first) attention.window_tokens = window;
    });
  }
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {0, 0, 1408, 0});
  moe.router = read_grouped_router(keys, 1.0);
  moe.router.is_normalized = keys.flag("norm_topk_prob", false);
  set_moe_behind(keys, moe, 0, spec);
  write_decoder(spec, {.moe = kMoeStyle});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
