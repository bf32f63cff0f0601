// SPDX-License-Identifier: Apache-2.0
// Kimi Linear, Kimi K3 and Ling 2.5: Kimi delta attention in most layers, latent attention in the others,
// mixtures behind a dense prefix. Source: transformers' KimiLinearConfig and BailingHybridConfig.
#include <utility>

#include "model/families/deepseek.h"
#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

struct Kda {
  std::int64_t heads = 32, head_dim = 128, kernel = 4;
  bool has_full_gates = false;  // decay and output gate are full matrices instead of low-rank pairs
  std::int64_t inner() const { return heads * head_dim; }
};

State state_of(const Kda& kda) {
  return {.kind = StateKind::kKda,
          .heads = static_cast<int>(kda.heads),
          .recurrent_elements = kda.inner() * kda.head_dim,
          .convolution_elements = 3 * kda.inner() * (kda.kernel - 1),
          .kernel = static_cast<int>(kda.kernel),
          .recurrent_dtype = DType::kF32,  // engines keep it so whatever the model is in
          .head_dim = static_cast<int>(kda.head_dim),
          .state_size = static_cast<int>(kda.head_dim),
          .key_heads = static_cast<int>(kda.heads),
          .norms_before_gate = true,
          .norm_groups = static_cast<int>(kda.heads)};
}

// A full matrix, or a pair of narrow ones.
void write_gate(SpecWriter& writer, const Kda& kda, const std::string& name, Role role, Role expansion) {
  const std::int64_t width = writer.width();
  if (kda.has_full_gates) return writer.linear_as(role, "self_attn." + name + "_proj", kda.inner(), width);
  writer.linear_as(role, "self_attn." + name + "_a_proj", kda.head_dim, width);
  writer.linear_as(expansion, "self_attn." + name + "_b_proj", kda.inner(), kda.head_dim);
}

void write_kda(SpecWriter& writer, const Kda& kda) {
  struct Part {
    const char* name;
    Role matrix, convolution;
  };
  const std::int64_t width = writer.width(), inner = kda.inner();
  for (const Part& part : {Part{"q", Role::kQuery, Role::kStateQueryConvolution},
                           Part{"k", Role::kKey, Role::kStateKeyConvolution},
                           Part{"v", Role::kValue, Role::kStateValueConvolution}}) {
    const std::string at = std::string("self_attn.") + part.name;
    writer.linear_as(part.matrix, at + "_proj", inner, width);
    writer.role_as(part.convolution, at + "_conv1d.weight", {inner, 1, kda.kernel});
  }
  write_gate(writer, kda, "f", Role::kStateStep, Role::kStateStepExpansion);
  write_gate(writer, kda, "g", Role::kStateGate, Role::kStateGateExpansion);
  writer.linear_as(Role::kStateBeta, "self_attn.b_proj", kda.heads, width);
  writer.role_as(Role::kStateDecay, "self_attn.A_log",
                 kda.has_full_gates ? std::vector{kda.heads} : std::vector<std::int64_t>{1, 1, kda.heads, 1});
  writer.role_as(Role::kStateStepBias, "self_attn.dt_bias", {inner});
  writer.role_as(Role::kStateNorm, "self_attn.o_norm.weight", {kda.head_dim});
  writer.linear_as(Role::kStateOutput, "self_attn.o_proj", width, inner);
}

// Mixtures stand under a name of their own, dense layers under mlp; experts have Mixtral's names.
void rename_mixtures(ModelSpec& spec) {
  const auto replace = [](std::string& name, std::string_view from, std::string_view to) {
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, from.size(), to);
  };
  for (Weight& weight : spec.weights) {
    if (weight.group != Group::kRouter && weight.group != Group::kExperts &&
        weight.group != Group::kSharedExperts)
      continue;
    replace(weight.hf_name, ".mlp.", ".block_sparse_moe.");
    if (weight.group != Group::kExperts) continue;
    replace(weight.hf_name, ".gate_proj.", ".w1.");
    replace(weight.hf_name, ".down_proj.", ".w2.");
    replace(weight.hf_name, ".up_proj.", ".w3.");
  }
}

Latent read_kimi_latent(KeyReader& keys, const ModelSpec& spec) {
  Latent latent = read_latent(keys, spec);
  if (!keys.has("q_lora_rank")) latent.q_lora_rank = 0;
  latent.scale = latent_scale(latent, spec.rope);
  return latent;
}

// The grouped router under Kimi's names for its figures.
Router read_kimi_router(KeyReader& keys) {
  Router router = read_grouped_router(keys, 1.0);
  router.is_normalized = keys.flag("moe_renormalize", router.is_normalized);
  return router;
}

// Layers that the dense prefix leaves get the mixture; so do those that a list calls sparse.
void set_mixtures(KeyReader& keys, const Ffn& moe, std::int64_t otherwise, ModelSpec& spec) {
  if (keys["mlp_layer_types"].is_array()) return set_moe_layers(keys, moe, spec);
  const auto prefix = keys.integer("first_k_dense_replace", 0, kMaxLayers, otherwise);
  for (std::size_t i = static_cast<std::size_t>(prefix); i < spec.layers.size(); ++i)
    spec.layers[i].ffn = moe;
}

DecoderDefaults defaults_of(int hidden_size, int intermediate_size, int num_layers, std::int64_t vocab_size,
                            std::int64_t context_tokens) {
  return {.norm_eps = 1e-5,
          .context_tokens = context_tokens,
          .head_dim = 64,
          .hidden_size = hidden_size,
          .intermediate_size = intermediate_size,
          .num_layers = num_layers,
          .vocab_size = vocab_size,
          .has_class_defaults = true};
}

}  // namespace

ModelSpec kimi_linear_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, defaults_of(2304, 9216, 27, 163'840, 1'048'576));
  spec.ties_embeddings = false;  // transformers keeps a head of its own whatever the config says
  Latent latent = read_kimi_latent(keys, spec);
  latent.uses_rope = false;
  KeyReader linear = keys.child("linear_attn_config");
  const Kda kda{
      .heads = linear.count("num_heads", kMaxHeads, keys.integer("linear_num_heads", 1, kMaxHeads, 32)),
      .head_dim = linear.count("head_dim", kMaxHeadDim, keys.integer("linear_head_dim", 1, kMaxHeadDim, 128)),
      .kernel = linear.integer("short_conv_kernel_size", 1, kMaxKernel,
                               keys.integer("linear_conv_kernel_dim", 1, kMaxKernel, 4))};
  for (Layer& layer : spec.layers) layer.mixer = latent;
  if (!read_state_layers(keys, state_of(kda), spec)) {
    const bool is_listed = linear.has("full_attn_layers");
    const auto attends = linear.named_layers("full_attn_layers", spec.layers.size(), 1);
    for (std::size_t i = 0; i < spec.layers.size(); ++i)
      if (is_listed ? !attends[i] : i == 0 || i % 4 != 0) spec.layers[i].mixer = state_of(kda);
  }
  keys.take_error(linear);
  Ffn moe = read_moe(keys, spec.layers.front().ffn, {256, 8, 1024, 1});
  moe.router = read_kimi_router(keys);
  set_mixtures(keys, moe, 1, spec);
  spec.rope.rotary_dim = 0;
  write_decoder(spec, {.moe = {.score_bias = "mlp.gate.e_score_correction_bias"},
                       .latent = read_latent_bias(keys),
                       .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                         if (std::holds_alternative<State>(layer.mixer)) write_kda(writer, kda);
                       }});
  rename_mixtures(spec);
  spec.has_file_names = true;
  // Kimi K3's experts work in a narrower space and its layers mix what blocks before them left: which weights
  // that takes is not public.
  if (keys.has("routed_expert_hidden_size") || keys.has("attn_res_block_size")) {
    spec.weights.clear();
    spec.has_all_weights = spec.has_file_names = false;
    add_trait(spec, Trait::kOwnFfn);
  }
  return spec;
}

ModelSpec bailing_hybrid_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(2560, 6144, 42, 157'184, 262'144);
  defaults.norm_eps = 1e-6;
  ModelSpec spec = read_config_decoder(keys, defaults);
  spec.ties_embeddings = false;  // transformers keeps a head of its own whatever the config says
  Latent latent = read_kimi_latent(keys, spec);
  latent.uses_rope = false;  // order comes from the layers between
  latent.scale = latent_scale(latent, spec.rope);
  if (!keys.flag("mla_use_nope", true)) add_trait(spec, Trait::kOwnRope);
  const Kda kda{
      .heads = keys.count("linear_num_heads", kMaxHeads, latent.q_heads),
      .head_dim = keys.count("linear_head_dim", kMaxHeadDim, keys.integer("head_dim", 1, kMaxHeadDim, 128)),
      .kernel = keys.integer("linear_conv_kernel_dim", 1, kMaxKernel,
                             keys.integer("short_conv_kernel_size", 1, kMaxKernel, 4)),
      .has_full_gates = true};
  for (Layer& layer : spec.layers) layer.mixer = latent;
  if (!read_state_layers(keys, state_of(kda), spec)) {
    const auto group = static_cast<std::size_t>(keys.integer("layer_group_size", 1, kMaxLayers, 6));
    for (std::size_t i = 0; i < spec.layers.size(); ++i)
      if ((i + 1) % group != 0) spec.layers[i].mixer = state_of(kda);
  }
  set_mixtures(keys, read_moe(keys, spec.layers.front().ffn, {512, 8, 768, 1}), 2, spec);
  spec.rope.rotary_dim = latent.qk_rope_head_dim;
  add_trait(spec, Trait::kOutputGate);
  add_trait(spec, Trait::kUnknown);
  write_decoder(spec, {.moe = {.score_bias = "mlp.gate.expert_bias"},
                       .latent = read_latent_bias(keys),
                       .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                         if (std::holds_alternative<State>(layer.mixer)) return write_kda(writer, kda);
                         writer.linear(Group::kAttention, "self_attn.g_proj", latent.q_heads, writer.width());
                       }});
  rename_weights(spec, {{".self_attn.o_proj.", ".self_attn.dense."},
                        {".self_attn.", ".attention."},
                        {"model.embed_tokens.", "model.word_embeddings."}});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
