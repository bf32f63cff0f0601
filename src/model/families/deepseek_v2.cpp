// SPDX-License-Identifier: Apache-2.0
// DeepSeek MoE (the first, with plain attention) and DeepSeek V2 (latent attention without score bias).
// Source: transformers' DeepseekV2Config; for the first its published modeling code.
#include <string>
#include <utility>

#include "model/families/deepseek.h"
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {

ModelSpec deepseek_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {});
  read_attention_bias(keys, spec);
  set_moe_layers(keys, read_moe(keys, spec.layers.front().ffn), spec);
  add_trait(spec, Trait::kUnknown);
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

namespace {

// Softmax scores, the best experts of all or of the groups that hold the best one.
Router read_v2_router(KeyReader& keys, ModelSpec& spec) {
  Router router;
  router.scale = keys.positive("routed_scaling_factor", 1.0);
  const std::string method = keys.text("topk_method", "greedy");
  if (method == "group_limited_greedy") {
    router.groups = static_cast<int>(keys.integer("n_group", 1, kMaxExperts));
    router.groups_per_token = static_cast<int>(keys.integer("topk_group", 1, router.groups));
  }
  // What a normalized choice weighs, transformers and the first published code compute differently.
  if ((method != "greedy" && method != "group_limited_greedy") || keys.flag("norm_topk_prob", false) ||
      keys.text("scoring_func", "softmax") != "softmax")
    add_trait(spec, Trait::kOwnFfn);
  return router;
}

}  // namespace

ModelSpec deepseek_v2_from_config(KeyReader& keys) {
  ModelSpec spec =
      read_config_decoder(keys, {.head_dim = 64, .vocab_size = 102'400, .has_class_defaults = true});
  set_latent(read_latent(keys, spec), spec);
  spec.rope.interleaved = true;
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  // The class names no number of experts per token; both published sizes take six.
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {64, 6, 1407, 2});
  moe.router = read_v2_router(keys, spec);
  set_moe_layers(keys, moe, spec);
  write_decoder(spec, {.latent = read_latent_bias(keys)});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
