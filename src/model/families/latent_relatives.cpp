// SPDX-License-Identifier: Apache-2.0
// Decoders with DeepSeek's latent attention and nothing else of its shape, or with a mixture of another
// prefix: MiniCPM 3, Youtu, Mistral 4, A.X K1. Source: transformers' configuration and modeling files of
// these names.
#include <cmath>
#include <utility>

#include "model/families/deepseek.h"
#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

// What a class assumes of latent attention where a config is silent.
struct LatentDefaults {
  int q_lora_rank, kv_lora_rank, qk_rope_head_dim, qk_nope_head_dim, v_head_dim;
};

// Every layer gets latent attention; head_dim in these configs is that of the rotated part.
ModelSpec read_latent_decoder(KeyReader& keys, const DecoderDefaults& defaults,
                              const LatentDefaults& latents) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  Latent latent = read_latent(keys, spec);
  if (!keys.contains("q_lora_rank")) latent.q_lora_rank = latents.q_lora_rank;
  if (!keys.has("kv_lora_rank")) latent.kv_lora_rank = latents.kv_lora_rank;
  if (!keys.has("qk_rope_head_dim")) latent.qk_rope_head_dim = latents.qk_rope_head_dim;
  if (!keys.has("qk_nope_head_dim")) latent.qk_nope_head_dim = latents.qk_nope_head_dim;
  if (!keys.has("v_head_dim")) latent.v_head_dim = latents.v_head_dim;
  set_latent(latent, spec);
  read_rope_pairs(keys, spec);
  return spec;
}

}  // namespace

ModelSpec minicpm3_from_config(KeyReader& keys) {
  ModelSpec spec = read_latent_decoder(keys,
                                       {.norm_eps = 1e-5,
                                        .context_tokens = 32'768,
                                        .ties_embeddings = true,
                                        .head_dim = 32,
                                        .hidden_size = 2560,
                                        .intermediate_size = 6400,
                                        .num_layers = 62,
                                        .q_heads = 40,
                                        .vocab_size = 73'448,
                                        .has_class_defaults = true},
                                       {768, 256, 32, 64, 64});
  if (!keys.has("v_head_dim"))
    for (Layer& layer : spec.layers) {
      auto& latent = std::get<Latent>(layer.mixer);
      latent.v_head_dim = std::max(1, spec.hidden_size / latent.q_heads);
    }
  spec.rope.interleaved = false;
  spec.embedding_scale = keys.positive("scale_emb", 12.0);
  // A null leaves residual and logits as they are.
  if (keys.has("scale_depth") || !keys.contains("scale_depth"))
    spec.residual_scale =
        keys.positive("scale_depth", 1.4) / std::sqrt(static_cast<double>(spec.layers.size()));
  if (keys.has("dim_model_base") || !keys.contains("dim_model_base"))
    spec.logits_scale = keys.positive("dim_model_base", 256.0) / spec.hidden_size;
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  write_decoder(spec, {.latent = read_latent_bias(keys)});
  spec.has_file_names = true;
  return spec;
}

ModelSpec youtu_from_config(KeyReader& keys) {
  ModelSpec spec = read_latent_decoder(keys,
                                       {.context_tokens = 131'072,
                                        .ties_embeddings = true,
                                        .head_dim = 64,
                                        .hidden_size = 2048,
                                        .intermediate_size = 6144,
                                        .num_layers = 32,
                                        .q_heads = 16,
                                        .vocab_size = 128'256,
                                        .has_class_defaults = true},
                                       {1536, 512, 64, 128, 128});
  write_decoder(spec, {.latent = read_latent_bias(keys)});
  spec.has_file_names = true;
  return spec;
}

namespace {

// Without rope parameters the class extends 8,192 tokens by yarn; queries grow with the position.
void read_mistral4_rope(KeyReader& keys, ModelSpec& spec) {
  Latent latent = std::get<Latent>(spec.layers.front().mixer);
  KeyReader scaling = keys.child(keys["rope_parameters"].is_object() ? "rope_parameters" : "rope_scaling");
  latent.temperature_tokens = scaling.integer("original_max_position_embeddings", 1, kMaxContext, 8192);
  latent.temperature_scale = scaling["llama_4_scaling_beta"].as_double().value_or(0);
  keys.take_error(scaling);
  if (!keys["rope_parameters"].is_object() && !keys["rope_scaling"].is_object()) {
    latent.temperature_scale = 0.1;
    spec.rope.kind = RopeKind::kYarn;
    spec.rope.factor = 128;
    spec.rope.original_context_tokens = latent.temperature_tokens;
    spec.rope.mscale = spec.rope.mscale_all_dim = 1;
  }
  set_latent(latent, spec);
}

}  // namespace

ModelSpec mistral4_from_config(KeyReader& keys) {
  ModelSpec spec = read_latent_decoder(keys,
                                       {.context_tokens = 1'048'576,
                                        .head_dim = 128,
                                        .hidden_size = 4096,
                                        .intermediate_size = 12'288,
                                        .num_layers = 36,
                                        .q_heads = 32,
                                        .vocab_size = 131'072,
                                        .has_class_defaults = true,
                                        .turned_share = 1.0},
                                       {1024, 256, 64, 64, 128});
  read_mistral4_rope(keys, spec);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {128, 4, 2048, 1});
  moe.router = read_grouped_router(keys, 1.0);
  moe.router.scores = Router::Scores::kSoftmax;
  // Without first_k_dense_replace all layers are mixtures.
  set_moe_layers(keys, moe, spec);
  write_decoder(spec, {.moe = {.has_stacked_experts = true}, .latent = read_latent_bias(keys)});
  spec.has_file_names = !keys.is_nested();
  return spec;
}

ModelSpec axk1_from_config(KeyReader& keys) {
  ModelSpec spec = read_latent_decoder(keys,
                                       {.context_tokens = 32'768,
                                        .head_dim = 64,
                                        .hidden_size = 7168,
                                        .intermediate_size = 18'432,
                                        .num_layers = 61,
                                        .q_heads = 64,
                                        .vocab_size = 163'840,
                                        .has_class_defaults = true},
                                       {1536, 512, 64, 128, 128});
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {192, 8, 2048, 1});
  moe.router = read_grouped_router(keys, 2.5, 8, 4);
  set_moe_behind(keys, moe, 1, spec);
  write_decoder(spec,
                {.moe = {.score_bias = "mlp.gate.e_score_correction_bias"},
                 .latent = read_latent_bias(keys),
                 .norms = [](SpecWriter& writer, const Layer& layer, int) {
                   write_two_norms(writer);
                   if (layer.ffn.kind == FfnKind::kMoe)  // dense layers' files have one that nobody uses
                     writer.role_as(Role::kFfnPostNorm, "post_mlp_layernorm.weight", {writer.width()});
                 }});
  for (Weight& weight : spec.weights)
    if (weight.role == Role::kScoreBias) weight.is_optional = true;  // the published files have none
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
