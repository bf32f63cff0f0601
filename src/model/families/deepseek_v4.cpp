// SPDX-License-Identifier: Apache-2.0
// DeepSeek V4: one shared vector for keys and values, kept for a window and beyond it compressed, some layers
// with an indexer over the compressed ones; residual streams; mixtures everywhere, the first routed by a hash
// of the token. Source: transformers' DeepseekV4Config; prediction layers as the published code builds them.
#include <algorithm>
#include <string>
#include <utility>

#include "model/families/families.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

constexpr std::int64_t kMaxRatio = 1 << 30;

struct V4 {
  ModelSpec spec;
  std::int64_t streams = 4, output_groups = 8, output_rank = 1024;
  std::vector<bool> is_hashed = {};
  bool has_bias = false;
};

// How many tokens a compressed vector stands for, layer by layer; 0: only the window is kept. One further
// entry belongs to each prediction layer.
struct Ratios {
  std::vector<int> layers = {};
  int mtp = 0;
  int sparse = 4;  // up to it vectors are chosen by the indexer
};

int ratio_at(KeyReader& keys, std::size_t index) {
  const auto ratio = keys["compress_ratios"].items()[index].as_integer();
  if (!ratio || *ratio < 0 || *ratio > kMaxRatio)
    keys.add_error(ErrorCode::kMalformed, "compress_ratios",
                   "reading the model: compress_ratios holds " +
                       dump(keys["compress_ratios"].items()[index]).substr(0, 60) + ", not a ratio");
  return static_cast<int>(std::clamp<std::int64_t>(ratio.value_or(0), 0, kMaxRatio));
}

Ratios read_ratios(KeyReader& keys, std::size_t num_layers) {
  KeyReader rates = keys.child("compress_rates");
  const int sparse = rates.count("compressed_sparse_attention", 1 << 30, 4);
  const int heavy = rates.count("heavily_compressed_attention", 1 << 30, 128);
  keys.take_error(rates);
  Ratios ratios{.sparse = sparse};
  const Json& list = keys["compress_ratios"];
  const auto words = read_layer_words(keys, "layer_types", num_layers);
  for (std::size_t i = 0; i < num_layers; ++i)
    if (!words.empty())
      ratios.layers.push_back(words[i] == "compressed_sparse_attention"    ? sparse
                              : words[i] == "heavily_compressed_attention" ? heavy
                                                                           : 0);
    else if (list.is_array() && list.size() >= num_layers)
      ratios.layers.push_back(ratio_at(keys, i));
    else
      ratios.layers.push_back(i < 2 || i % 2 == 0 ? heavy : sparse);
  if (list.is_array() && list.size() > num_layers) ratios.mtp = ratio_at(keys, num_layers);
  return ratios;
}

// The indexer goes with light compression: of heavily compressed vectors all are read.
Latent latent_of(const Latent& base, const Indexer& indexer, int ratio, int sparse_ratio) {
  Latent latent = base;
  latent.tokens_per_entry = std::max(1, ratio);
  if (ratio > 0 && ratio <= sparse_ratio) {
    latent.indexer = indexer;
    latent.indexer->tokens_per_key = ratio;
  }
  return latent;
}

void write_compressor(SpecWriter& writer, Group group, const std::string& at, std::int64_t ratio,
                      std::int64_t width, bool overlaps) {
  const std::int64_t wide = overlaps ? 2 * width : width;
  writer.add(group, at + "ape", {ratio, wide});
  writer.linear(group, at + "wkv", wide, writer.width());
  writer.linear(group, at + "wgate", wide, writer.width());
  writer.add(group, at + "norm.weight", {width});
}

void write_attention_of(SpecWriter& writer, const V4& model, const Latent& latent) {
  const std::int64_t width = writer.width(), heads = latent.q_heads, dim = latent.width();
  const std::int64_t rank = latent.q_lora_rank, inner = model.output_groups * model.output_rank;
  writer.linear(Group::kAttention, "attn.wq_a", rank, width);
  writer.add(Group::kNorm, "attn.q_norm.weight", {rank});
  writer.linear(Group::kAttention, "attn.wq_b", heads * dim, rank);
  writer.linear(Group::kAttention, "attn.wkv", dim, width);
  writer.add(Group::kNorm, "attn.norm.weight", {dim});
  writer.linear(Group::kAttention, "attn.wo_a", inner, heads * dim / model.output_groups);
  writer.linear(Group::kAttention, "attn.wo_b", width, inner);
  writer.add(Group::kAttention, "attn.attn_sink", {heads});
  if (latent.tokens_per_entry == 1) return;
  write_compressor(writer, Group::kAttention, "attn.compressor.", latent.tokens_per_entry, dim,
                   latent.indexer.has_value());
  if (!latent.indexer) return;
  const std::int64_t keys = std::int64_t{latent.indexer->heads} * latent.indexer->head_dim;
  write_compressor(writer, Group::kIndexer, "attn.indexer.compressor.", latent.tokens_per_entry,
                   latent.indexer->head_dim, true);
  writer.linear(Group::kIndexer, "attn.indexer.wq_b", keys, rank);
  writer.linear(Group::kIndexer, "attn.indexer.weights_proj", latent.indexer->heads, width);
}

void write_moe_of(SpecWriter& writer, const V4& model, const Ffn& moe, bool is_hashed) {
  const std::int64_t width = writer.width(), inner = moe.expert_intermediate_size;
  writer.add(Group::kRouter, "ffn.gate.weight", {moe.experts, width});
  if (is_hashed) {
    Weight& table =
        writer.add(Group::kRouter, "ffn.gate.tid2eid", {model.spec.vocab_size, moe.experts_per_token});
    table.is_parameter = false;
    table.dtype = DType::kI64;
  } else {
    writer.add(Group::kRouter, "ffn.gate.bias", {moe.experts}).is_parameter = false;
  }
  writer.linears(Group::kExperts, "ffn.experts.{}.w1", inner, width, moe.experts);
  writer.linears(Group::kExperts, "ffn.experts.{}.w2", width, inner, moe.experts);
  writer.linears(Group::kExperts, "ffn.experts.{}.w3", inner, width, moe.experts);
  const std::int64_t shared = moe.shared_intermediate_size;
  if (shared == 0) return;
  writer.linear(Group::kSharedExperts, "ffn.shared_experts.w1", shared, width, model.has_bias);
  writer.linear(Group::kSharedExperts, "ffn.shared_experts.w2", width, shared, model.has_bias);
  writer.linear(Group::kSharedExperts, "ffn.shared_experts.w3", shared, width, model.has_bias);
}

// The weights that mix the residual streams: `rows` of them, with as many offsets and `scales`.
void write_mixing(SpecWriter& writer, const V4& model, const std::string& name, std::int64_t rows,
                  std::int64_t scales) {
  writer.add(Group::kOther, name + "_fn", {rows, model.streams * writer.width()});
  writer.add(Group::kOther, name + "_base", {rows});
  writer.add(Group::kOther, name + "_scale", {scales});
}

void write_layer(SpecWriter& writer, const V4& model, const Layer& layer, bool is_hashed) {
  const std::int64_t rows = (2 + model.streams) * model.streams;
  writer.norm("attn_norm", writer.width());
  write_mixing(writer, model, "hc_attn", rows, 3);
  write_attention_of(writer, model, std::get<Latent>(layer.mixer));
  writer.norm("ffn_norm", writer.width());
  write_mixing(writer, model, "hc_ffn", rows, 3);
  write_moe_of(writer, model, layer.ffn, is_hashed);
}

void write_mtp(SpecWriter& writer, V4& model, const Layer& layer, int count) {
  writer.override_group(Group::kMtp);
  const std::int64_t width = writer.width();
  for (int i = 0; i < count; ++i) {
    writer.enter("mtp." + std::to_string(i) + ".", static_cast<int>(model.spec.layers.size()) + i);
    for (const char* name : {"enorm", "hnorm", "norm"}) writer.norm(name, width);
    writer.linear(Group::kMtp, "e_proj", width, width);
    writer.linear(Group::kMtp, "h_proj", width, width);
    write_layer(writer, model, layer, false);
    write_mixing(writer, model, "hc_head", model.streams, 1);
    model.spec.mtp_layers.push_back(layer);
  }
  writer.end_override();
}

// hash_moe in a list, or the first num_hash_layers.
void read_hashed(KeyReader& keys, V4& model) {
  const std::size_t num_layers = model.spec.layers.size();
  const auto words = read_layer_words(keys, "mlp_layer_types", num_layers);
  const auto first = static_cast<std::size_t>(keys.integer("num_hash_layers", 0, kMaxLayers, 3));
  for (std::size_t i = 0; i < num_layers; ++i)
    model.is_hashed.push_back(words.empty() ? i < first : words[i] == "hash_moe");
}

Latent read_window_latent(KeyReader& keys, const Attention& attention) {
  Latent latent;
  latent.q_heads = attention.q_heads;
  latent.q_lora_rank = keys.count("q_lora_rank", kMaxWidth, 1024);
  const double rotating = std::min(keys.positive("partial_rotary_factor", 0.125), 1.0);
  const auto otherwise = static_cast<std::int64_t>(rotating * attention.head_dim);
  latent.qk_rope_head_dim =
      static_cast<int>(keys.integer("qk_rope_head_dim", 0, attention.head_dim, otherwise));
  latent.kv_lora_rank = attention.head_dim - latent.qk_rope_head_dim;
  latent.qk_nope_head_dim = latent.kv_lora_rank;
  latent.v_head_dim = attention.head_dim;
  latent.window_tokens = keys.integer("sliding_window", 1, kMaxContext, 128);
  return latent;
}

}  // namespace

ModelSpec deepseek_v4_from_config(KeyReader& keys) {
  V4 model{.spec = read_config_decoder(keys, {.context_tokens = 1'048'576,
                                              .head_dim = 512,
                                              .kv_heads = 1,
                                              .hidden_size = 4096,
                                              .intermediate_size = 2048,
                                              .num_layers = 43,
                                              .q_heads = 64,
                                              .vocab_size = 129'280,
                                              .has_class_defaults = true})};
  ModelSpec& spec = model.spec;
  model.streams = keys.integer("hc_mult", 1, 64, 4);
  model.output_groups = keys.integer("o_groups", 1, kMaxHeads, 8);
  model.output_rank = keys.integer("o_lora_rank", 1, kMaxWidth, 1024);
  model.has_bias = keys.flag("mlp_bias", false);
  read_hashed(keys, model);
  const Latent base = read_window_latent(keys, std::get<Attention>(spec.layers.front().mixer));
  const Indexer indexer{.heads = keys.count("index_n_heads", kMaxHeads, 64),
                        .head_dim = keys.count("index_head_dim", kMaxHeadDim, 128),
                        .selected_tokens = keys.count("index_topk", 1 << 30, 512)};
  const Ratios ratios = read_ratios(keys, spec.layers.size());
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {256, 6, 2048, 1});
  // The shared experts are one feed-forward of one expert's width, however many the config counts.
  moe.shared_intermediate_size = std::min(moe.shared_intermediate_size, moe.expert_intermediate_size);
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    spec.layers[i] = {latent_of(base, indexer, ratios.layers[i], ratios.sparse), moe};
  spec.rope.rotary_dim = base.qk_rope_head_dim;
  for (const Trait trait : {Trait::kResidualStreams, Trait::kAttentionSinks, Trait::kOwnAttention,
                            Trait::kOwnRope, Trait::kOwnFfn})
    add_trait(spec, trait);

  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const auto index = static_cast<std::size_t>(i);
    writer.enter("layers." + std::to_string(i) + ".", i);
    write_layer(writer, model, layers[index], model.is_hashed[index]);
  }
  write_head(writer);
  writer.enter("");
  write_mixing(writer, model, "hc_head", model.streams, 1);
  write_mtp(writer, model, {latent_of(base, indexer, ratios.mtp, ratios.sparse), moe},
            static_cast<int>(keys.integer("num_nextn_predict_layers", 0, kMaxMtpLayers, 1)));
  return std::move(spec);
}

}  // namespace plimsoll::model
