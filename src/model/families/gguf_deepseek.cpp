// SPDX-License-Identifier: Apache-2.0
// GGUF files of DeepSeek's shape: "deepseek2" is what llama.cpp's converter calls V2, V3, Kimi K2, GLM 4.7
// Flash and others. Source: llama.cpp's converter and its loading of that architecture.
#include <algorithm>
#include <string>

#include "model/families/deepseek.h"
#include "model/families/families.h"
#include "model/rope.h"

namespace plimsoll::model {
namespace {

// The numbers of expert_gating_func.
constexpr std::int64_t kSoftmaxGate = 1, kSigmoidGate = 2;

Latent read_latent(KeyReader& keys) {
  const auto number = [&](std::string_view key, std::int64_t most, std::int64_t otherwise = 0) {
    return static_cast<int>(keys.integer(key, 0, most, otherwise));
  };
  Latent latent;
  latent.norm_eps = kCompressedNormEps;
  latent.q_heads = keys.count("attention.head_count", kMaxHeads);
  latent.q_lora_rank = number("attention.q_lora_rank", kMaxWidth);
  latent.kv_lora_rank = keys.count("attention.kv_lora_rank", kMaxWidth);
  latent.qk_rope_head_dim = number("rope.dimension_count", kMaxHeadDim);
  // Files with halves state the stored vector's width as key_length, and those of the heads as *_mla.
  const int key =
      number("attention.key_length_mla", kMaxHeadDim, number("attention.key_length", kMaxHeadDim));
  latent.qk_nope_head_dim = std::max(0, key - latent.qk_rope_head_dim);
  latent.v_head_dim =
      number("attention.value_length_mla", kMaxHeadDim, keys.count("attention.value_length", kMaxHeadDim));
  return latent;
}

// The converter keeps a tenth of mscale_all_dim; mscale is the same number in all models that are published,
// so that cosines and sines stay as they are.
void read_yarn_depth(KeyReader& keys, RopeSpec& rope) {
  if (rope.kind != RopeKind::kYarn || !keys.has("rope.scaling.yarn_log_multiplier")) return;
  rope.mscale_all_dim = keys.positive("rope.scaling.yarn_log_multiplier", 0.1) * 10;
  rope.mscale = rope.mscale_all_dim;
}

Router read_router(KeyReader& keys) {
  Router router;
  const auto gate = keys.integer("expert_gating_func", kSoftmaxGate, kSigmoidGate, kSoftmaxGate);
  if (gate == kSigmoidGate) router.scores = Router::Scores::kSigmoid;
  router.sums_two_of_group = gate == kSigmoidGate;
  router.is_normalized = keys.flag("expert_weights_norm", false);
  router.scale = keys.positive("expert_weights_scale", 1.0);
  router.groups = static_cast<int>(keys.integer("expert_group_count", 1, kMaxExperts, 1));
  router.groups_per_token =
      static_cast<int>(keys.integer("expert_group_used_count", 1, router.groups, router.groups));
  return router;
}

// block_count counts the layers that predict further tokens, which stand last and are not run.
void take_prediction_layers(KeyReader& keys, ModelSpec& spec) {
  const auto layers = static_cast<std::int64_t>(spec.layers.size());
  const auto predicted = static_cast<std::size_t>(keys.integer("nextn_predict_layers", 0, layers - 1, 0));
  spec.mtp_layers.assign(predicted, spec.layers.back());
  spec.layers.resize(spec.layers.size() - predicted);
}

}  // namespace

ModelSpec deepseek2_from_gguf(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec = read_gguf_frame(keys, artifact);
  const Latent latent = read_latent(keys);
  Ffn dense;
  dense.intermediate_size = keys.count("feed_forward_length", kMaxWidth);
  for (Layer& layer : spec.layers) layer.ffn = dense;
  const Router router = read_router(keys);
  read_gguf_experts(keys, router, spec);
  read_gguf_rope(keys, latent.qk_rope_head_dim, spec);
  read_yarn_depth(keys, spec.rope);
  spec.rope.interleaved = true;
  set_latent(latent, spec);
  if (keys.has("attention.temperature_scale") || keys.has("attention.indexer.top_k"))
    add_trait(spec, Trait::kOwnAttention);
  take_prediction_layers(keys, spec);
  const bool has_bias = artifact.find("blk.0.attn_kv_a_mqa.bias") != nullptr;
  DecoderStyle style{.latent = {.has_q_bias = has_bias,
                                .has_output_bias = artifact.find("blk.0.attn_output.bias") != nullptr,
                                .has_halves = !artifact.find("blk.0.attn_kv_b.weight")}};
  const std::string score_bias = "blk." + std::to_string(spec.layers.size() - 1) + ".exp_probs_b.bias";
  if (artifact.find(score_bias)) style.moe.score_bias = "mlp.gate.e_score_correction_bias";
  write_decoder(spec, style);
  spec.has_file_names = true;
  if (router.scores == Router::Scores::kSoftmax) {
    spec.architecture = "DeepseekV2ForCausalLM";
    spec.model_type = "deepseek_v2";
  }
  return spec;
}

}  // namespace plimsoll::model
