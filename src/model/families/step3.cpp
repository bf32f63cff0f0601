// SPDX-License-Identifier: Apache-2.0
// Step 3.5 and 3.7 Flash: sliding layers with more heads among full ones, a gate per head, mixtures behind a
// dense prefix with one shared expert. Source: transformers' Step3p7TextConfig.
#include <algorithm>
#include <charconv>
#include <string>

#include "model/families/families.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

// Layers that moe_layers_enum names, a list or numbers between commas; nothing without it.
std::optional<std::vector<bool>> read_named_mixtures(KeyReader& keys, std::size_t num_layers) {
  if (!keys.has("moe_layers_enum")) return std::nullopt;
  if (keys["moe_layers_enum"].is_array()) return keys.named_layers("moe_layers_enum", num_layers);
  std::vector<bool> named(num_layers);
  const std::string text = keys.text("moe_layers_enum", "");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    std::size_t layer = 0;
    if (std::from_chars(text.data() + at, text.data() + end, layer).ec == std::errc() && layer < num_layers)
      named[layer] = true;
    at = end + 1;
  }
  return named;
}

// The words of a list that may go on for the prediction layers; empty without it.
std::vector<std::string> read_padded_words(KeyReader& keys, std::string_view key, std::size_t num_layers) {
  const Json& list = keys[key];
  if (!list.is_array() || list.size() <= num_layers) return read_layer_words(keys, key, num_layers);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < num_layers; ++i) {
    const std::string* word = list.items()[i].as_string();
    words.push_back(word ? *word : "");
  }
  return words;
}

void set_mixtures(KeyReader& keys, const Ffn& moe, ModelSpec& spec) {
  const std::size_t num_layers = spec.layers.size();
  const auto words = read_padded_words(keys, "mlp_layer_types", num_layers);
  const auto named = read_named_mixtures(keys, num_layers);
  const auto prefix = static_cast<std::size_t>(keys.integer("first_k_dense_replace", 0, kMaxLayers, 3));
  for (std::size_t i = 0; i < num_layers; ++i)
    if (!words.empty() ? words[i] == "sparse" : named ? (*named)[i] : i >= prefix) spec.layers[i].ffn = moe;
}

void set_attention(KeyReader& keys, ModelSpec& spec) {
  const auto words = read_padded_words(keys, "layer_types", spec.layers.size());
  KeyReader other = keys.child("attention_other_setting");
  std::optional<std::int64_t> window;
  if (keys.has("sliding_window")) window = keys.integer("sliding_window", 1, kMaxContext);
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.has_qk_norm = true;
    if (words.empty() || words[i] != "sliding_attention") return;
    attention.window_tokens = window;
    attention.q_heads = keys.count("num_sliding_attention_heads", kMaxHeads,
                                   other.integer("num_attention_heads", 1, kMaxHeads, attention.q_heads));
  });
  keys.take_error(other);
}

}  // namespace

ModelSpec step3p5_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                              .context_tokens = 128'000,
                                              .head_dim = 128,
                                              .kv_heads = keys.count("num_attention_groups", kMaxHeads, 8),
                                              .hidden_size = 4096,
                                              .intermediate_size = 11'264,
                                              .num_layers = 45,
                                              .q_heads = 64,
                                              .vocab_size = 128'815,
                                              .has_class_defaults = true});
  read_attention_bias(keys, spec);
  set_attention(keys, spec);
  const bool has_bias = keys.flag("mlp_bias", false);
  for (Layer& layer : spec.layers) layer.ffn.has_bias = has_bias;
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {288, keys.count("moe_top_k", kMaxExperts, 8), 1280, 1});
  moe.shared_experts = 1;
  moe.shared_intermediate_size = keys.count(
      keys.has("share_expert_dims") ? "share_expert_dims" : "share_expert_dim", kMaxWidth * 16, 1280);
  set_mixtures(keys, moe, spec);
  const Json& gating = keys["gating"];
  const bool per_head =
      gating.is_string() ? *gating.as_string() == "per-head" : gating.as_bool().value_or(true);
  for (const Trait trait : {Trait::kOutputGate, Trait::kNormPlusOne, Trait::kOwnRope, Trait::kOwnFfn})
    add_trait(spec, trait);
  write_decoder(
      spec, {.moe = {.experts = "moe.experts.", .shared = "share_expert.", .score_bias = "moe.router_bias"},
             .extras = [&](SpecWriter& writer, const Layer& layer, int) {
               const auto& attention = std::get<Attention>(layer.mixer);
               const std::int64_t gates =
                   std::int64_t{attention.q_heads} * (per_head ? 1 : attention.head_dim);
               writer.linear(WeightGroup::kAttention, "self_attn.g_proj", gates, writer.width());
             }});
  return spec;
}

}  // namespace plimsoll::model
