// SPDX-License-Identifier: Apache-2.0
// LFM2 and LFM2.5: short gated convolutions with attention in some layers, dense or mixtures of experts.
// Source: transformers' Lfm2Config and Lfm2MoeConfig.
#include <cmath>
#include <utility>

#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

struct Convolution {
  std::int64_t kernel = 3;
  bool has_bias = false;
};

void write_convolution(SpecWriter& writer, const Convolution& convolution) {
  const std::int64_t width = writer.width();
  const auto bias = [&](Role role) { return role_if(convolution.has_bias, role); };
  writer.role_as(Role::kStateConvolution, "conv.conv.weight", {width, 1, convolution.kernel});
  if (convolution.has_bias) writer.role_as(Role::kStateConvolutionBias, "conv.conv.bias", {width});
  writer.linear_as(Role::kStateInput, "conv.in_proj", 3 * width, width, bias(Role::kStateInputBias));
  writer.linear_as(Role::kStateOutput, "conv.out_proj", width, width, bias(Role::kStateOutputBias));
}

State state_of(const ModelSpec& spec, const Convolution& convolution) {
  return {.kind = StateKind::kShortConv,
          .convolution_elements = (convolution.kernel - 1) * spec.hidden_size,
          .kernel = static_cast<int>(convolution.kernel)};
}

ModelSpec read_layers(KeyReader& keys, const DecoderDefaults& defaults, Convolution& convolution) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  spec.ties_embeddings = keys.flag("tie_embedding", spec.ties_embeddings);
  convolution.kernel = keys.integer("conv_L_cache", 1, kMaxKernel, 3);
  convolution.has_bias = keys.flag("conv_bias", false);
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qk_norm = true; });
  const State state = state_of(spec, convolution);
  if (!read_state_layers(keys, state, spec) && keys.has("full_attn_idxs")) {
    const auto attends = keys.named_layers("full_attn_idxs", spec.layers.size());
    for (std::size_t i = 0; i < spec.layers.size(); ++i)
      if (!attends[i]) spec.layers[i].mixer = state;
  }
  return spec;
}

ModelSpec finish(ModelSpec spec, const Convolution& convolution, bool has_score_bias = false) {
  write_decoder(spec, {.moe = {.score_bias = has_score_bias ? "mlp.expert_bias" : ""},
                       .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                         if (std::holds_alternative<State>(layer.mixer))
                           write_convolution(writer, convolution);
                       }});
  rename_weights(spec, {{".mlp.", ".feed_forward."},
                        {".gate_proj.", ".w1."},
                        {".down_proj.", ".w2."},
                        {".up_proj.", ".w3."},
                        {".input_layernorm.", ".operator_norm."},
                        {".post_attention_layernorm.", ".ffn_norm."},
                        {".self_attn.o_proj.", ".self_attn.out_proj."},
                        {".self_attn.q_norm.", ".self_attn.q_layernorm."},
                        {".self_attn.k_norm.", ".self_attn.k_layernorm."},
                        {"model.norm.", "model.embedding_norm."}});
  spec.has_file_names = true;
  return spec;
}

// The width that the config states is of a feed-forward without gate: two thirds of it, rounded up.
int adjusted(KeyReader& keys, std::int64_t stated) {
  stated = keys.integer("block_ff_dim", 1, kMaxWidth, stated);
  if (!keys.flag("block_auto_adjust_ff_dim", true)) return static_cast<int>(stated);
  std::int64_t inner = 2 * stated / 3;
  if (keys.contains("block_ffn_dim_multiplier") && !keys.has("block_ffn_dim_multiplier"))
    return static_cast<int>(std::max<std::int64_t>(1, inner));
  const double factor = std::min(keys.positive("block_ffn_dim_multiplier", 1.0), 64.0);
  inner = static_cast<std::int64_t>(factor * static_cast<double>(inner));
  const std::int64_t step = keys.integer("block_multiple_of", 1, kMaxWidth, 256);
  return static_cast<int>(std::max<std::int64_t>(1, (inner + step - 1) / step * step));
}

}  // namespace

ModelSpec lfm2_from_config(KeyReader& keys) {
  Convolution convolution;
  ModelSpec spec = read_layers(keys,
                               {.norm_eps = 1e-5,
                                .rope_theta = 1'000'000.0,
                                .context_tokens = 128'000,
                                .ties_embeddings = true,
                                .kv_heads = 8,
                                .hidden_size = 2560,
                                .intermediate_size = 12'288,
                                .vocab_size = 65'536,
                                .has_class_defaults = true},
                               convolution);
  for (Layer& layer : spec.layers) layer.ffn.intermediate_size = adjusted(keys, layer.ffn.intermediate_size);
  return finish(std::move(spec), convolution);
}

ModelSpec lfm2_moe_from_config(KeyReader& keys) {
  Convolution convolution;
  ModelSpec spec = read_layers(keys,
                               {.norm_eps = 1e-5,
                                .rope_theta = 1'000'000.0,
                                .context_tokens = 128'000,
                                .ties_embeddings = true,
                                .kv_heads = 8,
                                .hidden_size = 2048,
                                .intermediate_size = 7168,
                                .vocab_size = 65'536,
                                .has_class_defaults = true},
                               convolution);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {32, 4, 1792});
  moe.router.scores = Router::Scores::kSigmoid;
  moe.router.is_normalized = keys.flag("norm_topk_prob", true);
  moe.router.scale = keys.positive("routed_scaling_factor", 1.0);
  const auto dense = static_cast<std::size_t>(keys.integer("num_dense_layers", 0, kMaxLayers, 2));
  for (std::size_t i = dense; i < spec.layers.size(); ++i) spec.layers[i].ffn = moe;
  return finish(std::move(spec), convolution, keys.flag("use_expert_bias", true));
}

// Of every four layers one is full, one slides but for the first of all, two are convolutions.
std::vector<std::string> class_layer_types(ModelSpec& spec, const Convolution& convolution) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    words.emplace_back(i % 4 == 2 ? "full_attention" : i % 4 == 0 && i > 0 ? "sliding_attention" : "conv");
    if (words.back() == "conv") spec.layers[i].mixer = state_of(spec, convolution);
  }
  return words;
}

// Sliding layers among full ones, norms around every block, a gate per head.
ModelSpec lfm3_from_config(KeyReader& keys) {
  Convolution convolution;
  ModelSpec spec = read_layers(keys,
                               {.norm_eps = 1e-5,
                                .rope_theta = 1'000'000.0,
                                .context_tokens = 128'000,
                                .ties_embeddings = true,
                                .head_dim = 128,
                                .kv_heads = 4,
                                .hidden_size = 2048,
                                .intermediate_size = 7680,
                                .num_layers = 24,
                                .q_heads = 16,
                                .vocab_size = 128'000,
                                .has_class_defaults = true},
                               convolution);
  add_trait(spec, Trait::kUnknown);
  convolution.kernel = keys.integer("conv_L_cache", 1, kMaxKernel, 7);
  read_attention_bias(keys, spec);
  const std::int64_t window = keys.integer("sliding_window", 1, kMaxContext, 256);
  auto words = read_layer_words(keys, "layer_types", spec.layers.size());
  if (words.empty()) words = class_layer_types(spec, convolution);
  const bool is_gated = keys.flag("use_attention_gate", true),
             is_wrapped = keys.flag("use_sandwich_norm", true);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    Layer& layer = spec.layers[i];
    if (auto* attention = std::get_if<Attention>(&layer.mixer)) {
      if (!words.empty() && words[i] == "sliding_attention") attention->window_tokens = window;
    } else {
      std::get<State>(layer.mixer).convolution_elements = (convolution.kernel - 1) * spec.hidden_size;
    }
  }
  write_decoder(spec, {.extras = [&](SpecWriter& writer, const Layer& layer, int) {
                  if (is_wrapped) {
                    writer.norm("post_operator_norm", writer.width());
                    writer.norm("post_ffn_norm", writer.width());
                  }
                  if (const auto* attention = std::get_if<Attention>(&layer.mixer)) {
                    if (is_gated)
                      writer.linear(WeightGroup::kAttention, "self_attn.gate", attention->q_heads,
                                    writer.width());
                  } else {
                    write_convolution(writer, convolution);
                  }
                }});
  rename_weights(spec, {{".mlp.", ".feed_forward."},
                        {".gate_proj.", ".w1."},
                        {".self_attn.gate.", ".self_attn.gate_proj."},
                        {".down_proj.", ".w2."},
                        {".up_proj.", ".w3."},
                        {".input_layernorm.", ".operator_norm."},
                        {".post_attention_layernorm.", ".ffn_norm."},
                        {"model.norm.", "model.embedding_norm."}});
  return spec;
}

}  // namespace plimsoll::model
