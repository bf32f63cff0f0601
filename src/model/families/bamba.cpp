// SPDX-License-Identifier: Apache-2.0
// Mamba 2 among attention: Bamba (one or the other), Falcon-H1 (both in every layer), Granite 4 (one or the
// other, with a mixture of experts). Source: transformers' BambaConfig, FalconH1Config,
// GraniteMoeHybridConfig.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/families/families.h"
#include "model/families/parts.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

constexpr Mamba kMambaDefaults{.states = 256, .heads = 128, .groups = 1};

DecoderDefaults defaults_of(std::int64_t context_tokens) {
  return {.norm_eps = 1e-5,
          .context_tokens = context_tokens,
          .kv_heads = 8,
          .intermediate_size = 14'336,
          .vocab_size = 128'000,
          .has_class_defaults = true};
}

DecoderStyle style_of(const Mamba& mamba) {
  return {.extras = [&mamba](SpecWriter& writer, const Layer& layer, int) {
    if (std::holds_alternative<State>(layer.mixer) || !layer.side_states.empty())
      write_mamba(writer, mamba, "mamba.");
  }};
}

// Experts with a shared one, or a feed-forward of its width alone under the same name.
void write_granite_ffn(SpecWriter& writer, const Ffn& ffn) {
  if (ffn.kind == FfnKind::kMoe) return write_granite_experts(writer, ffn);
  writer.linear_as(Role::kGateUp, "shared_mlp.input_linear", 2 * std::int64_t{ffn.intermediate_size},
                   writer.width());
  writer.linear_as(Role::kDown, "shared_mlp.output_linear", writer.width(), ffn.intermediate_size);
}

Ffn read_granite_ffn(KeyReader& keys, const Ffn& dense) {
  Ffn ffn = dense;
  const int shared = keys.count("shared_intermediate_size", kMaxWidth, 1024);
  if (keys.integer("num_experts", 0, kMaxExperts, 8) == 0) {
    ffn.intermediate_size = shared;
    return ffn;
  }
  ffn = read_moe(keys, dense, {8, 2, dense.intermediate_size});
  ffn.shared_experts = 1;
  ffn.shared_intermediate_size = shared;
  ffn.router.is_normalized = true;
  return ffn;
}

/// Factors of a list of `count`; ones where it is absent.
std::vector<double> read_factors(KeyReader& keys, std::string_view key, std::size_t count) {
  std::vector<double> factors = keys.numbers(key, count);
  if (!factors.empty() && factors.size() != count)
    keys.add_error(ErrorCode::kMalformed, key,
                   fmt::format("reading the model: {} is not a list of {} numbers", key, count));
  factors.resize(count, 1.0);
  return factors;
}

// Multipliers of what goes into the blocks are taken to where they have the same effect; beside a bias there
// is no such place.
void read_falcon_scales(KeyReader& keys, const Mamba& mamba, ModelSpec& spec) {
  const auto factor = [&](std::string_view key) { return keys.positive(key, 1.0); };
  spec.embedding_scale = factor("embedding_multiplier");
  spec.logits_scale = factor("lm_head_multiplier");
  const double in = factor("attention_in_multiplier"), out = factor("attention_out_multiplier");
  const double key = factor("key_multiplier");
  const double state_in = factor("ssm_in_multiplier"), state_out = factor("ssm_out_multiplier");
  const auto parts = read_factors(keys, "ssm_multipliers", 5);
  const auto ffn = read_factors(keys, "mlp_multipliers", 2);
  for (Layer& layer : spec.layers) {
    auto& attention = std::get<Attention>(layer.mixer);
    if ((attention.has_qkv_bias && (in != 1.0 || key != 1.0)) || (attention.has_output_bias && in != 1.0) ||
        (mamba.has_bias && state_in != 1.0))
      add_trait(spec, Trait::kOwnScales);
    attention.scale *= in * in * key;
    attention.output_scale = in * out;
    State& state = layer.side_states.front();
    for (std::size_t i = 0; i < parts.size(); ++i) state.input_scales[i] = state_in * parts[i];
    state.output_scale = state_out;
    layer.ffn.gate_scale = ffn[0];
    layer.ffn.output_scale = ffn[1];
  }
}

}  // namespace

ModelSpec bamba_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(262'144);
  defaults.turned_share = 0.5;
  ModelSpec spec = read_config_decoder(keys, defaults);
  const Mamba mamba = read_mamba2(keys, spec.hidden_size, kMambaDefaults);
  read_attention_bias(keys, spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  const auto attends = keys.named_layers("attn_layer_indices", spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if (!attends[i]) spec.layers[i].mixer = state_of(mamba);
  write_decoder(spec, style_of(mamba));
  rename_weights(spec, {{".mlp.", ".feed_forward."},
                        {".post_attention_layernorm.", ".pre_ff_layernorm."},
                        {"model.norm.", "model.final_layernorm."}});
  spec.has_file_names = true;
  return spec;
}

ModelSpec falcon_h1_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, defaults_of(8192));
  Mamba mamba = read_mamba2(keys, spec.hidden_size, kMambaDefaults);
  if (!keys.contains("mamba_d_ssm")) mamba.inner = 1024;  // null there means expand x hidden_size
  mamba.has_gated_norm = keys.flag("mamba_rms_norm", false);
  mamba.has_output_bias = keys.flag("projectors_bias", false);
  read_attention_bias(keys, spec);
  set_ffn_bias(spec, keys.flag("mlp_bias", false));
  mamba.norms_before_gate = mamba.has_gated_norm && keys.flag("mamba_norm_before_gate", true);
  for (Layer& layer : spec.layers) layer.side_states.push_back(state_of(mamba));
  read_falcon_scales(keys, mamba, spec);
  write_decoder(spec, style_of(mamba));
  rename_weights(spec, {{".mlp.", ".feed_forward."},
                        {".post_attention_layernorm.", ".pre_ff_layernorm."},
                        {"model.norm.", "model.final_layernorm."}});
  spec.has_file_names = true;
  return spec;
}

ModelSpec granitemoehybrid_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.has_class_defaults = true});
  const Mamba mamba = read_mamba2(keys, spec.hidden_size, kMambaDefaults);
  read_attention_bias(keys, spec);
  read_granite_scales(keys, spec);
  const bool has_rope = keys.text("position_embedding_type", "") == "rope";
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.uses_rope = has_rope; });
  const Ffn ffn = read_granite_ffn(keys, spec.layers.front().ffn);
  for (Layer& layer : spec.layers) layer.ffn = ffn;
  if (!read_state_layers(keys, state_of(mamba), spec))
    for (Layer& layer : spec.layers) layer.mixer = state_of(mamba);
  SpecWriter writer(spec);
  write_embedding(writer);
  const std::vector<Layer> layers = spec.layers;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const Layer& layer = layers[static_cast<std::size_t>(i)];
    enter_layer(writer, i);
    writer.role(Role::kAttentionNorm, {writer.width()});
    if (const auto* attention = std::get_if<Attention>(&layer.mixer))
      write_attention(writer, *attention);
    else
      write_mamba(writer, mamba, "mamba.");
    writer.role(Role::kFfnNorm, {writer.width()});
    write_granite_ffn(writer, layer.ffn);
  }
  write_head(writer);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
