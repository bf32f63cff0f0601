// SPDX-License-Identifier: Apache-2.0
// DeepSeek V2, V3, R1, V3.2 and what is published in their shape. Source: transformers' DeepseekV2Config,
// DeepseekV3Config; prediction layers as the published V3 files hold them.
#include "model/families/deepseek.h"

#include <cmath>

#include "model/families/families.h"

namespace plimsoll::model {
namespace {

constexpr std::string_view kScoreBias = "mlp.gate.e_score_correction_bias";

DecoderDefaults v3_defaults() {
  return {.context_tokens = 4096,
          .hidden_size = 7168,
          .intermediate_size = 18'432,
          .num_layers = 61,
          .q_heads = 128,
          .vocab_size = 129'280,
          .has_class_defaults = true};
}

ModelSpec finish(KeyReader& keys, ModelSpec spec, DecoderStyle style) {
  style.latent = read_latent_bias(keys);
  write_decoder(spec, style);
  const int predicted = static_cast<int>(keys.integer("num_nextn_predict_layers", 0, 64, 0));
  SpecWriter writer(spec);
  write_mtp_layers(writer, spec.layers.back(), predicted, style);
  spec.has_file_names = true;
  return spec;
}

}  // namespace

Latent read_latent(KeyReader& keys, const ModelSpec& spec) {
  Latent latent;
  latent.q_heads = std::get<Attention>(spec.layers.front().mixer).q_heads;
  latent.norm_eps = kCompressedNormEps;
  latent.q_lora_rank =
      static_cast<int>(keys.integer("q_lora_rank", 0, kMaxWidth, keys.contains("q_lora_rank") ? 0 : 1536));
  latent.kv_lora_rank = keys.count("kv_lora_rank", kMaxWidth, 512);
  latent.qk_rope_head_dim = static_cast<int>(keys.integer("qk_rope_head_dim", 0, kMaxHeadDim, 64));
  latent.qk_nope_head_dim = static_cast<int>(keys.integer("qk_nope_head_dim", 0, kMaxHeadDim, 128));
  latent.v_head_dim = keys.count("v_head_dim", kMaxHeadDim, 128);
  return latent;
}

double latent_scale(const Latent& latent, const RopeSpec& rope) {
  const double scale =
      1.0 / std::sqrt(static_cast<double>(latent.qk_nope_head_dim) + latent.qk_rope_head_dim);
  const double depth =
      rope.kind == RopeKind::kYarn && rope.factor > 1.0 ? rope.mscale_all_dim.value_or(0) : 0;
  const double factor = depth == 0 ? 1.0 : 0.1 * depth * std::log(rope.factor) + 1.0;
  return scale * factor * factor;
}

void set_latent(Latent latent, ModelSpec& spec) {
  spec.rope.rotary_dim = latent.qk_rope_head_dim;
  latent.scale = latent_scale(latent, spec.rope);
  for (Layer& layer : spec.layers) layer.mixer = latent;
}

void read_rope_pairs(KeyReader& keys, ModelSpec& spec) {
  spec.rope.interleaved = keys.flag("rope_interleave", true);
}

LatentStyle read_latent_bias(KeyReader& keys) {
  const bool has_bias = keys.flag("attention_bias", false);
  return {.has_q_bias = has_bias, .has_output_bias = has_bias};
}

namespace {

Indexer class_indexer(KeyReader& keys) {
  Indexer indexer;
  indexer.heads = keys.count("index_n_heads", kMaxHeads, 64);
  indexer.head_dim = keys.count("index_head_dim", kMaxHeadDim, 128);
  indexer.selected_tokens = keys.count("index_topk", kMaxContext, 2048);
  return indexer;
}

}  // namespace

std::optional<Indexer> read_indexer(KeyReader& keys) {
  return keys.has("index_topk") ? std::optional(class_indexer(keys)) : std::nullopt;
}

void write_mtp_layers(SpecWriter& writer, const Layer& layer, int count, const DecoderStyle& style,
                      bool shares_ends) {
  writer.override_group(WeightGroup::kMtp);
  const std::int64_t width = writer.width(), vocab = writer.spec().vocab_size;
  const int first = static_cast<int>(writer.spec().layers.size());
  for (int i = 0; i < count; ++i) {
    enter_layer(writer, first + i);
    for (const char* name :
         {"enorm", "hnorm", "shared_head.norm", "input_layernorm", "post_attention_layernorm"})
      writer.norm(name, width);
    writer.linear(WeightGroup::kMtp, "eh_proj", width, 2 * width);
    if (!shares_ends) {
      writer.add(WeightGroup::kMtp, "embed_tokens.weight", {vocab, width});
      writer.add(WeightGroup::kMtp, "shared_head.head.weight", {vocab, width});
    }
    if (const auto* latent = std::get_if<Latent>(&layer.mixer)) write_latent(writer, *latent, style.latent);
    if (const auto* attention = std::get_if<Attention>(&layer.mixer)) write_attention(writer, *attention);
    write_any_ffn(writer, layer.ffn, style.moe);
    writer.spec().mtp_layers.push_back(layer);
  }
  writer.end_override();
}

namespace {

// What the class assumes where the config is silent on which layers are mixtures.
void keep_first_dense(const KeyReader& keys, const Ffn& dense, ModelSpec& spec) {
  constexpr std::size_t kFirstDense = 3;
  if (keys.has("first_k_dense_replace") || keys["mlp_layer_types"].is_array() ||
      keys["moe_layer_freq"].is_array())
    return;
  for (std::size_t i = 0; i < std::min(kFirstDense, spec.layers.size()); ++i) spec.layers[i].ffn = dense;
}

}  // namespace

namespace {

// What all versions from 3 on share: sigmoid scores, the choice corrected by a bias and made within groups.
ModelSpec read_v3(KeyReader& keys, std::optional<Indexer> (*indexer_of)(KeyReader&)) {
  ModelSpec spec = read_config_decoder(keys, v3_defaults());
  Latent latent = read_latent(keys, spec);
  latent.indexer = indexer_of(keys);
  set_latent(latent, spec);
  read_rope_pairs(keys, spec);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {256, 8, 2048, 1});
  moe.router = read_grouped_router(keys, 2.5, 8, 4);
  if (keys.text("scoring_func", "sigmoid") != "sigmoid" || keys.text("topk_method", "noaux_tc") != "noaux_tc")
    add_trait(spec, Trait::kOwnFfn);
  set_moe_layers(keys, moe, spec);
  keep_first_dense(keys, dense, spec);
  return finish(keys, std::move(spec), {.moe = {.score_bias = kScoreBias}});
}

}  // namespace

ModelSpec deepseek_v3_from_config(KeyReader& keys) {
  return read_v3(keys, [](KeyReader&) { return std::optional<Indexer>(); });
}

ModelSpec deepseek_v32_from_config(KeyReader& keys) {
  return read_v3(keys, [](KeyReader& silent) { return std::optional(class_indexer(silent)); });
}

ModelSpec sarvam_mla_from_config(KeyReader& keys) {
  ModelSpec spec = deepseek_v3_from_config(keys);
  add_trait(spec, Trait::kUnknown);  // its code is not in transformers
  return spec;
}

}  // namespace plimsoll::model
