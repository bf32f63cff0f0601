// SPDX-License-Identifier: Apache-2.0
// Nemotron-H, Nemotron 3 and 3.5: every layer is one thing, Mamba 2, attention, a feed-forward or a mixture,
// in an order of its own. Source: transformers' NemotronHConfig; prediction layers as published files hold
// them.
#include <fmt/format.h>

#include <utility>

#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

struct Nemotron {
  ModelSpec spec;
  Attention attention = {};
  Mamba mamba = {};
  Ffn dense = {}, moe = {};
  std::int64_t latent = 0;  // width that experts work in; 0: the model's
};

constexpr Ffn kNoFfn{.kind = FfnKind::kNone};

// What a word of layers_block_type or a letter of hybrid_override_pattern stands for.
std::optional<Layer> layer_of(const Nemotron& model, std::string_view word) {
  if (word == "M" || word == "mamba" || word == "linear_attention")
    return Layer{state_of(model.mamba), kNoFfn};
  if (word == "*" || word == "attention" || word == "full_attention") return Layer{model.attention, kNoFfn};
  if (word == "-" || word == "mlp") return Layer{NoMixer{}, model.dense};
  if (word == "E" || word == "moe") return Layer{NoMixer{}, model.moe};
  return std::nullopt;
}

// The layers that a list of words or a string of letters describes; `otherwise` when both are absent.
std::vector<Layer> read_blocks(KeyReader& keys, const Nemotron& model, std::string_view list_key,
                               std::string_view pattern_key, std::string_view otherwise) {
  std::vector<std::string> words;
  std::string_view key = list_key;
  if (const Json& list = keys[list_key]; list.is_array()) {
    for (const Json& item : list.items()) words.push_back(item.as_string() ? *item.as_string() : "");
  } else {
    key = pattern_key;
    for (const char letter : keys.text(pattern_key, otherwise)) words.emplace_back(1, letter);
  }
  std::vector<Layer> layers;
  if (words.size() > static_cast<std::size_t>(kMaxLayers)) words.clear();
  for (const std::string& word : words)
    if (auto layer = layer_of(model, word))
      layers.push_back(*std::move(layer));
    else
      keys.add_error(
          ErrorCode::kUnsupported, key,
          fmt::format("reading the model: a layer is of the unknown type \"{}\"", word.substr(0, 60)));
  if (layers.empty()) {
    keys.add_error(ErrorCode::kMalformed, key, "reading the model: it names no layer, or too many");
    layers.emplace_back(NoMixer{}, kNoFfn);
  }
  return layers;
}

// What works in a narrower space has no role: an engine refuses it.
void write_moe_block(SpecWriter& writer, const Nemotron& model) {
  const Ffn& moe = model.moe;
  const std::int64_t width = writer.width(), inner = moe.expert_intermediate_size;
  const std::int64_t input = model.latent > 0 ? model.latent : width;
  writer.role_as(Role::kRouter, "mixer.gate.weight", {moe.experts, width});
  writer.role_as(Role::kScoreBias, "mixer.gate.e_score_correction_bias", {moe.experts}).is_parameter = false;
  if (model.latent > 0) {
    writer.linear(Group::kFfn, "mixer.fc1_latent_proj", input, width, moe.has_bias);
    writer.linear(Group::kFfn, "mixer.fc2_latent_proj", width, input, moe.has_bias);
  }
  writer.experts_as(Role::kExpertUp, "mixer.experts.{}.up_proj", inner, input, moe.experts);
  writer.experts_as(Role::kExpertDown, "mixer.experts.{}.down_proj", input, inner, moe.experts);
  if (moe.has_bias)
    return write_gated(writer, Group::kSharedExperts, "mixer.shared_experts.", moe.shared_intermediate_size,
                       false, true);
  writer.linear_as(Role::kSharedUp, "mixer.shared_experts.up_proj", moe.shared_intermediate_size, width);
  writer.linear_as(Role::kSharedDown, "mixer.shared_experts.down_proj", width, moe.shared_intermediate_size);
}

void write_block(SpecWriter& writer, const Nemotron& model, const Layer& layer) {
  const bool has_mixer = !std::holds_alternative<NoMixer>(layer.mixer);
  writer.norm_as(has_mixer ? Role::kAttentionNorm : Role::kFfnNorm, "norm", writer.width());
  if (std::holds_alternative<State>(layer.mixer)) return write_mamba(writer, model.mamba, "mixer.");
  if (const auto* attention = std::get_if<Attention>(&layer.mixer))
    return write_attention(writer, *attention);
  if (layer.ffn.kind == FfnKind::kMoe) return write_moe_block(writer, model);
  const std::int64_t inner = layer.ffn.intermediate_size;
  writer.linear_as(Role::kUp, "mixer.up_proj", inner, writer.width(),
                   role_if(layer.ffn.has_bias, Role::kUpBias));
  writer.linear_as(Role::kDown, "mixer.down_proj", writer.width(), inner,
                   role_if(layer.ffn.has_bias, Role::kDownBias));
}

// As many times over: norms and a projection in front of the blocks of mtp_layers_block_type, a norm behind.
void write_mtp(KeyReader& keys, Nemotron& model) {
  const auto count = keys.integer("num_nextn_predict_layers", 0, kMaxMtpLayers, 0);
  if (count == 0) return;
  const auto blocks = read_blocks(keys, model, "mtp_layers_block_type", "mtp_hybrid_override_pattern", "*E");
  SpecWriter writer(model.spec);
  writer.override_group(Group::kMtp);
  const std::int64_t width = writer.width();
  const int first = static_cast<int>(model.spec.layers.size());
  int index = 0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < blocks.size() && index < kMaxLayers; ++k, ++index) {
      writer.enter(fmt::format("mtp.layers.{}.", index), first + index);
      if (k == 0) {
        writer.norm("enorm", width);
        writer.norm("hnorm", width);
        writer.linear(Group::kMtp, "eh_proj", width, 2 * width);
      }
      write_block(writer, model, blocks[k]);
      if (k + 1 == blocks.size()) writer.norm("final_layernorm", width);
      model.spec.mtp_layers.push_back(blocks[k]);
    }
}

void read_ffns(KeyReader& keys, Nemotron& model) {
  model.dense = model.spec.layers.front().ffn;
  model.dense.is_gated = false;
  model.dense.activation = activation_of(keys.text("mlp_hidden_act", "relu2"));
  model.dense.has_bias = keys.flag("mlp_bias", false);
  model.moe = read_moe(keys, model.dense, {8, 2, 7688, 1});
  model.moe.shared_intermediate_size = keys.count("shared_expert_intermediate_size", kMaxWidth, 7688);
  model.moe.router = read_grouped_router(keys, 1.0);
  model.latent = keys.integer("moe_latent_size", 0, kMaxWidth, 0);
}

void read_mamba(KeyReader& keys, Mamba& mamba) {
  mamba.heads = keys.count("mamba_num_heads", kMaxHeads, 128);
  mamba.inner = std::int64_t{mamba.heads} * keys.count("mamba_head_dim", kMaxHeadDim, 64);
  mamba.states = keys.integer("ssm_state_size", 1, kMaxWidth, 128);
  mamba.groups = keys.count(keys.has("mamba_n_groups") ? "mamba_n_groups" : "n_groups", kMaxHeads, 8);
  mamba.kernel = keys.integer(keys.has("mamba_d_conv") ? "mamba_d_conv" : "conv_kernel", 1, kMaxKernel, 4);
  mamba.has_bias = mamba.has_output_bias = keys.flag("use_bias", false);
  mamba.has_convolution_bias =
      keys.flag(keys.has("mamba_conv_bias") ? "mamba_conv_bias" : "use_conv_bias", true);
  mamba.state_dtype = dtype_from_config(keys.text("mamba_ssm_cache_dtype", "float32"));
  mamba.is_state_dtype_assumed = !keys.has("mamba_ssm_cache_dtype");
  mamba.chunk_tokens = read_chunk(keys, 128);
  // transformers clamps by time_step_min whatever time_step_limit says.
  mamba.least_step = keys.positive(keys.has("mamba_dt_min") ? "mamba_dt_min" : "time_step_min", 0.001);
}

}  // namespace

ModelSpec nemotron_h_from_config(KeyReader& keys) {
  Nemotron model{.spec = read_config_decoder(keys, {.norm_eps = 1e-5,
                                                    .context_tokens = 4096,
                                                    .head_dim = 128,
                                                    .kv_heads = 8,
                                                    .intermediate_size = 21'504,
                                                    .num_layers = 1,
                                                    .vocab_size = 131'072,
                                                    .has_class_defaults = true})};
  ModelSpec& spec = model.spec;
  model.attention = std::get<Attention>(spec.layers.front().mixer);
  model.attention.uses_rope = false;
  read_mamba(keys, model.mamba);
  read_ffns(keys, model);
  spec.layers = read_blocks(keys, model, "layer_types", "hybrid_override_pattern", "ME*-");
  if (keys.text("mamba_hidden_act", "silu") != "silu") add_trait(spec, Trait::kOwnAttention);
  spec.rope.rotary_dim = 0;
  spec.ties_embeddings = false;  // transformers keeps a head of its own whatever the config says

  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    enter_layer(writer, i);
    write_block(writer, model, layers[static_cast<std::size_t>(i)]);
  }
  write_head(writer);
  write_mtp(keys, model);
  rename_weights(spec, {{"model.layers.", "backbone.layers."},
                        {"model.embed_tokens.", "backbone.embeddings."},
                        {"model.norm.", "backbone.norm_f."},
                        {".self_attn.", ".mixer."}});
  spec.has_file_names = !keys.is_nested();
  return std::move(spec);
}

}  // namespace plimsoll::model
