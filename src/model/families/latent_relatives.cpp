// SPDX-License-Identifier: Apache-2.0
// Decoders with DeepSeek's latent attention and nothing else of its shape, or with a mixture of another
// prefix: MiniCPM 3, Youtu, Mistral 4. Source: transformers' MiniCPM3Config, YoutuConfig, Mistral4Config.
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
  ModelSpec spec = read_unchecked_decoder(keys, defaults);
  Latent latent = read_latent(keys, std::get<Attention>(spec.layers.front().mixer).q_heads);
  if (!keys.contains("q_lora_rank")) latent.q_lora_rank = latents.q_lora_rank;
  if (!keys.has("kv_lora_rank")) latent.kv_lora_rank = latents.kv_lora_rank;
  if (!keys.has("qk_rope_head_dim")) latent.qk_rope_head_dim = latents.qk_rope_head_dim;
  if (!keys.has("qk_nope_head_dim")) latent.qk_nope_head_dim = latents.qk_nope_head_dim;
  if (!keys.has("v_head_dim")) latent.v_head_dim = latents.v_head_dim;
  for (Layer& layer : spec.layers) layer.mixer = latent;
  spec.rope.rotary_dim = latent.qk_rope_head_dim;
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
  spec.embedding_scale = keys.positive("scale_emb", 1.0);
  spec.residual_scale =
      keys.positive("scale_depth", 1.4) / std::sqrt(static_cast<double>(spec.layers.size()));
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

ModelSpec mistral4_from_config(KeyReader& keys) {
  ModelSpec spec = read_latent_decoder(keys,
                                       {.context_tokens = 1'048'576,
                                        .head_dim = 128,
                                        .hidden_size = 4096,
                                        .intermediate_size = 12'288,
                                        .num_layers = 36,
                                        .q_heads = 32,
                                        .vocab_size = 131'072,
                                        .has_class_defaults = true},
                                       {1024, 256, 64, 64, 128});
  // Without first_k_dense_replace all layers are mixtures.
  set_moe_layers(keys, read_moe(keys, spec.layers.front().ffn, {128, 4, 2048, 1}), spec);
  write_decoder(spec, {.latent = read_latent_bias(keys)});
  spec.has_file_names = !keys.is_nested();
  return spec;
}

}  // namespace plimsoll::model
