// SPDX-License-Identifier: Apache-2.0
// Which layers are sliding, which are mixtures of experts: the many ways configs say so.
#include <fmt/format.h>

#include <algorithm>

#include "model/families/decoder.h"

namespace plimsoll::model {
namespace {

// A list with one entry per layer; null when the config has none. Another length is an error.
const Json* list_per_layer(KeyReader& keys, std::string_view key, std::size_t num_layers) {
  const Json& list = keys[key];
  if (!list.is_array()) return nullptr;
  if (list.size() == num_layers) return &list;
  keys.add_error(
      ErrorCode::kMalformed, key,
      fmt::format("reading the model: {} has {} entries for {} layers", key, list.size(), num_layers));
  return nullptr;
}

template <class Rule>
std::vector<bool> layers_where(std::size_t num_layers, Rule rule) {
  std::vector<bool> result(num_layers);
  for (std::size_t i = 0; i < num_layers; ++i) result[i] = rule(static_cast<std::int64_t>(i));
  return result;
}

}  // namespace

bool read_layer_types(KeyReader& keys, std::optional<std::int64_t> window, ModelSpec& spec) {
  if (keys["layer_types"].is_null()) return false;
  const Json* types = list_per_layer(keys, "layer_types", spec.layers.size());
  if (!types) return true;
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    const std::string* type = types->items()[i].as_string();
    attention.window_tokens.reset();
    attention.chunk_tokens.reset();
    // Sliding without a width: transformers refuses some of these and masks others out altogether.
    if (type && *type == "sliding_attention" && !window) add_trait(spec, Trait::kOwnAttention);
    if (type && *type == "sliding_attention")
      attention.window_tokens = window;
    else if (type && *type == "chunked_attention")
      attention.chunk_tokens = window;
    else if (!type || *type != "full_attention")
      keys.add_error(
          ErrorCode::kUnsupported, "layer_types",
          fmt::format("reading the model: layer {} is of the unknown type {}", i, dump(types->items()[i])));
  });
  return true;
}

void set_window_pattern(ModelSpec& spec, std::int64_t pattern, std::int64_t window) {
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    const bool is_full = pattern > 0 && (static_cast<std::int64_t>(i) + 1) % pattern == 0;
    attention.window_tokens = is_full ? std::nullopt : std::optional(window);
  });
}

std::vector<bool> read_moe_layers(KeyReader& keys, std::size_t num_layers) {
  const auto number = [&](std::string_view key, std::int64_t otherwise) {
    return keys.integer(key, 0, kMaxLayers, otherwise);
  };
  if (const Json* types = list_per_layer(keys, "mlp_layer_types", num_layers))
    return layers_where(num_layers, [&](std::int64_t i) {
      const std::string* type = types->items()[static_cast<std::size_t>(i)].as_string();
      return type && *type == "sparse";
    });
  if (const Json* flags = list_per_layer(keys, "moe_layer_freq", num_layers))
    return layers_where(num_layers, [&](std::int64_t i) {
      return flags->items()[static_cast<std::size_t>(i)].as_integer().value_or(0) != 0;
    });
  if (keys.has("first_k_dense_replace") || keys["moe_layer_freq"].is_integer()) {
    const std::int64_t dense = number("first_k_dense_replace", 0);
    const std::int64_t step =
        keys["moe_layer_freq"].is_array() ? 1 : std::max<std::int64_t>(1, number("moe_layer_freq", 1));
    return layers_where(num_layers, [&](std::int64_t i) { return i >= dense && i % step == 0; });
  }
  if (keys.has("decoder_sparse_step") || keys.has("mlp_only_layers")) {
    const std::int64_t step = number("decoder_sparse_step", 1);
    const std::vector<bool> dense = keys.named_layers("mlp_only_layers", num_layers);
    return layers_where(num_layers, [&](std::int64_t i) {
      return !dense[static_cast<std::size_t>(i)] && step > 0 && (i + 1) % step == 0;
    });
  }
  if (keys["moe_layers"].is_array()) return keys.named_layers("moe_layers", num_layers);
  if (keys.has("interleave_moe_layer_step")) {
    const std::int64_t step = number("interleave_moe_layer_step", 1);
    return layers_where(num_layers, [&](std::int64_t i) { return step > 0 && (i + 1) % step == 0; });
  }
  if (keys.has("moe_layer_start_index") || keys.has("moe_layer_interval")) {
    const std::int64_t first = number("moe_layer_start_index", 0);
    std::int64_t last = keys.integer("moe_layer_end_index", -1, kMaxLayers, -1);
    if (last < 0) last = static_cast<std::int64_t>(num_layers) - 1;
    const std::int64_t step = std::max<std::int64_t>(1, number("moe_layer_interval", 1));
    return layers_where(num_layers,
                        [&](std::int64_t i) { return i >= first && i <= last && (i + 1) % step == 0; });
  }
  return std::vector<bool>(num_layers, true);
}

Ffn read_moe(KeyReader& keys, const Ffn& dense, const MoeDefaults& defaults) {
  const auto otherwise = [](int value) {
    return value > 0 ? std::optional<std::int64_t>(value) : std::nullopt;
  };
  Ffn moe = dense;
  moe.kind = FfnKind::kMoe;
  moe.experts = keys.count("num_experts", kMaxExperts, otherwise(defaults.experts));
  moe.experts_per_token =
      keys.count("num_experts_per_tok", kMaxExperts, otherwise(defaults.experts_per_token));
  moe.expert_intermediate_size =
      keys.count("moe_intermediate_size", kMaxWidth, otherwise(defaults.intermediate_size));
  moe.shared_experts =
      static_cast<int>(keys.integer("num_shared_experts", 0, kMaxExperts, defaults.shared_experts));
  const std::int64_t together = std::int64_t{moe.shared_experts} * moe.expert_intermediate_size;
  if (together > kMaxSharedWidth)
    keys.add_error(
        ErrorCode::kMalformed, "num_shared_experts",
        fmt::format("reading the model: {} shared experts of width {} are more than a layer can have",
                    moe.shared_experts, moe.expert_intermediate_size));
  moe.shared_intermediate_size = static_cast<int>(keys.integer(
      "shared_expert_intermediate_size", 0, kMaxSharedWidth, std::min(together, kMaxSharedWidth)));
  if (moe.shared_experts == 0 && moe.shared_intermediate_size > 0) moe.shared_experts = 1;
  if (moe.experts_per_token > moe.experts)
    keys.add_error(
        ErrorCode::kMalformed, "num_experts_per_tok",
        fmt::format("reading the model: a token takes {} experts of {}", moe.experts_per_token, moe.experts));
  return moe;
}

Router read_grouped_router(KeyReader& keys, double scale, int groups, int groups_per_token) {
  Router router;
  router.scores = Router::Scores::kSigmoid;
  router.is_normalized = keys.flag("norm_topk_prob", true);
  router.scale = keys.positive("routed_scaling_factor", scale);
  router.groups = static_cast<int>(keys.integer("n_group", 1, kMaxExperts, groups));
  router.groups_per_token = static_cast<int>(
      keys.integer("topk_group", 1, router.groups, std::min(router.groups, groups_per_token)));
  router.sums_two_of_group = true;
  return router;
}

void set_moe_layers(KeyReader& keys, const Ffn& moe, ModelSpec& spec) {
  const std::vector<bool> is_moe = read_moe_layers(keys, spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (is_moe[i]) spec.layers[i].ffn = moe;
}

void set_moe_behind(KeyReader& keys, const Ffn& moe, std::size_t prefix, ModelSpec& spec) {
  if (keys["mlp_layer_types"].is_array() || keys.has("first_k_dense_replace"))
    return set_moe_layers(keys, moe, spec);
  for (std::size_t i = prefix; i < spec.layers.size(); ++i) spec.layers[i].ffn = moe;
}

}  // namespace plimsoll::model
