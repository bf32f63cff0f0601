// SPDX-License-Identifier: Apache-2.0
// MiniMax: Text-01 and M1 (lightning attention with some full layers), M2 (full attention), M3 (keys chosen
// by blocks). Source: transformers' MiniMaxConfig, MiniMaxM2Config, MiniMaxM3VLTextConfig; MiniMax-Text-01's
// own attn_type_list.
#include <algorithm>
#include <tuple>
#include <utility>

#include "model/families/families.h"
#include "model/families/parts.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

DecoderDefaults defaults_of(int kv_heads, int head_dim, int hidden_size, int intermediate_size,
                            int num_layers, int q_heads) {
  return {.rope_theta = 5'000'000.0,
          .head_dim = head_dim,
          .kv_heads = kv_heads,
          .hidden_size = hidden_size,
          .intermediate_size = intermediate_size,
          .num_layers = num_layers,
          .q_heads = q_heads,
          .vocab_size = 200'064,
          .has_class_defaults = true};
}

void rename_experts(ModelSpec& spec) {
  rename_weights(spec, {{".mlp.", ".block_sparse_moe."},
                        {".gate_proj.", ".w1."},
                        {".down_proj.", ".w2."},
                        {".up_proj.", ".w3."}});
}

void write_lightning(SpecWriter& writer, const Attention& attention) {
  const std::int64_t inner = std::int64_t{attention.q_heads} * attention.head_dim, width = writer.width();
  writer.linear_as(Role::kStateQueryKeyValue, "self_attn.qkv_proj", 3 * inner, width);
  writer.linear_as(Role::kStateGate, "self_attn.output_gate", inner, width);
  writer.role_as(Role::kStateNorm, "self_attn.norm.weight", {inner});
  writer.linear_as(Role::kStateOutput, "self_attn.out_proj", width, inner);
}

// Which layers are full: layer_types, attn_type_list of zeros and ones, or every second.
void set_lightning_layers(KeyReader& keys, const State& state, ModelSpec& spec) {
  if (read_state_layers(keys, state, spec)) return;
  const std::size_t num_layers = spec.layers.size();
  if (keys["attn_type_list"].is_array()) {
    const auto is_full = keys.per_layer("attn_type_list", num_layers, 0, 1);
    for (std::size_t i = 0; i < num_layers; ++i)
      if (is_full[i] == 0) spec.layers[i].mixer = state;
    return;
  }
  for (std::size_t i = 1; i < num_layers; i += 2) spec.layers[i].mixer = state;
}

// M3's figures of the sparse attention stand in an object of their own, or flat.
struct BlockIndexer {
  Indexer indexer;
  std::vector<bool> layers;
};
BlockIndexer read_block_indexer(KeyReader& keys, std::size_t num_layers) {
  KeyReader sparse = keys.child("sparse_attention_config");
  const auto number = [&](std::string_view own, std::string_view flat, std::int64_t otherwise) {
    return sparse.count(own, 1 << 24, keys.integer(flat, 1, 1 << 24, otherwise));
  };
  BlockIndexer result;
  result.indexer.heads = number("sparse_num_index_heads", "index_n_heads", 4);
  result.indexer.head_dim = number("sparse_index_dim", "index_head_dim", 128);
  const std::int64_t block = number("sparse_block_size", "index_block_size", 128);
  const std::int64_t blocks = number("sparse_topk_blocks", "index_topk_blocks", 16);
  result.indexer.selected_tokens = static_cast<int>(std::min<std::int64_t>(block * blocks, 1 << 30));
  result.layers.assign(num_layers, false);
  const auto words = read_layer_words(keys, "layer_types", num_layers);
  if (!words.empty()) {
    for (std::size_t i = 0; i < num_layers; ++i) result.layers[i] = words[i] == "minimax_m3_sparse";
  } else if (sparse["sparse_attention_freq"].is_array()) {
    const auto is_sparse = sparse.per_layer("sparse_attention_freq", num_layers, 0, 1);
    for (std::size_t i = 0; i < num_layers; ++i) result.layers[i] = is_sparse[i] != 0;
  }
  keys.take_error(sparse);
  return result;
}

void write_block_indexer(SpecWriter& writer, const Indexer& indexer) {
  writer.linear(Group::kIndexer, "self_attn.index_q_proj", std::int64_t{indexer.heads} * indexer.head_dim,
                writer.width());
  writer.linear(Group::kIndexer, "self_attn.index_k_proj", indexer.head_dim, writer.width());
  for (const char* name : {"self_attn.index_q_norm.weight", "self_attn.index_k_norm.weight"})
    writer.add(Group::kIndexer, name, {indexer.head_dim});
}

}  // namespace

ModelSpec minimax_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(8, 0, 4096, 14'336, 32, 32);
  defaults.norm_eps = 1e-5;
  defaults.rope_theta = 1'000'000.0;
  defaults.context_tokens = 131'072;
  defaults.vocab_size = 32'000;
  ModelSpec spec = read_config_decoder(keys, defaults);
  // transformers masks by a window that its cache, its layer_types and vLLM do not know.
  if (read_window(keys, 0)) add_trait(spec, Trait::kOwnAttention);
  const auto attention = std::get<Attention>(spec.layers.front().mixer);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {8, 2, dense.intermediate_size});
  moe.router.is_normalized = true;
  for (Layer& layer : spec.layers) layer.ffn = moe;
  set_lightning_layers(
      keys,
      {.kind = StateKind::kLightning,
       .heads = attention.q_heads,
       .recurrent_elements = std::int64_t{attention.q_heads} * attention.head_dim * attention.head_dim,
       .head_dim = attention.head_dim,
       .state_size = attention.head_dim,
       .key_heads = attention.q_heads,
       .norms_before_gate = true,
       .norm_eps = 1e-6},
      spec);
  spec.residual_is_normed = true;
  const auto factors = [&](std::string_view kept, std::string_view added) {
    return Residual{keys.positive(kept, 1.0), keys.positive(added, 1.0)};
  };
  const Residual full = factors("full_attn_alpha_factor", "full_attn_beta_factor");
  const Residual linear = factors("linear_attn_alpha_factor", "linear_attn_beta_factor");
  const Residual ffn = factors("mlp_alpha_factor", "mlp_beta_factor");
  for (Layer& layer : spec.layers) {
    layer.mixer_residual = std::holds_alternative<State>(layer.mixer) ? linear : full;
    layer.ffn_residual = ffn;
  }
  write_decoder(spec, {.extras = [&](SpecWriter& writer, const Layer& layer, int) {
                  if (std::holds_alternative<State>(layer.mixer)) write_lightning(writer, attention);
                }});
  rename_experts(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec minimax_m2_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(8, 128, 3072, 1536, 62, 48);
  defaults.context_tokens = 196'608;
  defaults.turned_share = 1.0;
  ModelSpec spec = read_config_decoder(keys, defaults);
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {256, 8, dense.intermediate_size});
  moe.router.scores = Router::Scores::kSigmoid;
  moe.router.is_normalized = true;
  for (Layer& layer : spec.layers) layer.ffn = moe;
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.has_qk_norm = attention.is_qk_norm_full_width = true;
  });
  spec.rope.rotary_dim = keys.count("rotary_dim", kMaxHeadDim, 64);
  if (keys.text("scoring_func", "sigmoid") != "sigmoid" ||
      keys.text("qk_norm_type", "per_layer") != "per_layer" || !keys.flag("use_qk_norm", true) ||
      !keys.flag("use_routing_bias", true))
    add_trait(spec, Trait::kUnknown);
  write_decoder(spec, {.moe = {.score_bias = "mlp.e_score_correction_bias"}});
  rename_experts(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec minimax_m3_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(4, 128, 6144, 3072, 60, 64);
  defaults.context_tokens = 524'288;
  ModelSpec spec = read_config_decoder(keys, defaults);
  const BlockIndexer sparse = read_block_indexer(keys, spec.layers.size());
  for_each_attention(spec, [&](Attention& attention, std::size_t i) {
    attention.has_qk_norm = true;
    if (sparse.layers[i]) attention.indexer = sparse.indexer;
  });
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {128, 4, dense.intermediate_size});
  moe.shared_intermediate_size = keys.count("shared_intermediate_size", kMaxWidth * 16, 3072);
  moe.shared_experts = 1;
  const int prefix_width = keys.count("dense_intermediate_size", kMaxWidth, 12'288);
  for (Layer& layer : spec.layers) layer.ffn.intermediate_size = prefix_width;
  set_moe_layers(keys, moe, spec);
  for (const Trait trait : {Trait::kNormPlusOne, Trait::kOwnFfn, Trait::kOwnAttention, Trait::kUnknown})
    add_trait(spec, trait);
  write_decoder(spec, {.moe = {.score_bias = "mlp.e_score_correction_bias"},
                       .extras = [](SpecWriter& writer, const Layer& layer, int) {
                         const auto& attention = std::get<Attention>(layer.mixer);
                         if (attention.indexer) write_block_indexer(writer, *attention.indexer);
                       }});
  return spec;
}

}  // namespace plimsoll::model
