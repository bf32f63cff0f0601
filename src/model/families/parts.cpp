// SPDX-License-Identifier: Apache-2.0
#include "model/families/parts.h"

#include <string>
#include <utility>

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

struct Widths {
  std::int64_t query, key, value, output;
};
Widths widths_of(const Attention& a) {
  return {std::int64_t{a.q_heads} * a.head_dim, std::int64_t{a.kv_heads} * a.head_dim,
          std::int64_t{a.kv_heads} * a.value_dim(), std::int64_t{a.q_heads} * a.value_dim()};
}

}  // namespace

void write_named_attention(SpecWriter& writer, const Attention& attention, const AttentionNames& names) {
  const Widths widths = widths_of(attention);
  const bool has_bias = attention.has_qkv_bias;
  writer.linear_as(Role::kQuery, names.query, widths.query, writer.width(),
                   role_if(has_bias, Role::kQueryBias));
  writer.linear_as(Role::kKey, names.key, widths.key, writer.width(), role_if(has_bias, Role::kKeyBias));
  writer.linear_as(Role::kValue, names.value, widths.value, writer.width(),
                   role_if(has_bias, Role::kValueBias));
  writer.linear_as(Role::kAttentionOutput, names.output, writer.width(), widths.output,
                   role_if(attention.has_output_bias, Role::kAttentionOutputBias));
}

void write_fused_attention(SpecWriter& writer, const Attention& attention, std::string_view qkv,
                           std::string_view output) {
  const Widths widths = widths_of(attention);
  writer.linear_as(Role::kQueryKeyValue, qkv, widths.query + widths.key + widths.value, writer.width(),
                   role_if(attention.has_qkv_bias, Role::kQueryKeyValueBias));
  writer.linear_as(Role::kAttentionOutput, output, writer.width(), widths.output,
                   role_if(attention.has_output_bias, Role::kAttentionOutputBias));
}

void write_plain_ffn(SpecWriter& writer, const Ffn& ffn, std::string_view up, std::string_view down) {
  writer.linear_as(Role::kUp, up, ffn.intermediate_size, writer.width(),
                   role_if(ffn.has_bias, Role::kUpBias));
  writer.linear_as(Role::kDown, down, writer.width(), ffn.intermediate_size,
                   role_if(ffn.has_bias, Role::kDownBias));
}

void write_fused_ffn(SpecWriter& writer, const Ffn& ffn) {
  const std::int64_t inner = ffn.intermediate_size;
  writer.linear_as(Role::kGateUp, "mlp.gate_up_proj", 2 * inner, writer.width(),
                   role_if(ffn.has_bias, Role::kGateUpBias));
  writer.linear_as(Role::kDown, "mlp.down_proj", writer.width(), inner,
                   role_if(ffn.has_bias, Role::kDownBias));
}

void write_mixtral_experts(SpecWriter& writer, const Ffn& ffn) {
  const std::int64_t inner = ffn.expert_intermediate_size, width = writer.width();
  writer.role_as(Role::kRouter, "block_sparse_moe.gate.weight", {ffn.experts, width});
  writer.experts_as(Role::kExpertGate, "block_sparse_moe.experts.{}.w1", inner, width, ffn.experts);
  writer.experts_as(Role::kExpertUp, "block_sparse_moe.experts.{}.w3", inner, width, ffn.experts);
  writer.experts_as(Role::kExpertDown, "block_sparse_moe.experts.{}.w2", width, inner, ffn.experts);
}

void write_stacked(SpecWriter& writer, std::string_view name, std::vector<std::int64_t> shape, int experts) {
  const bool is_matrix = shape.size() == 2;
  Weight& weight = writer.add(Group::kExperts, name, std::move(shape));
  weight.copies = experts;
  weight.is_linear = is_matrix;
}

void write_stacked_as(SpecWriter& writer, Role role, std::string_view name, std::vector<std::int64_t> shape,
                      int experts, bool is_turned) {
  Weight& weight = writer.role_as(role, name, std::move(shape));
  weight.copies = experts;
  weight.is_turned = is_turned;
}

void write_shared_as(SpecWriter& writer, std::string_view prefix, std::int64_t inner) {
  const std::string at(prefix);
  writer.linear_as(Role::kSharedGate, at + "gate_proj", inner, writer.width());
  writer.linear_as(Role::kSharedUp, at + "up_proj", inner, writer.width());
  writer.linear_as(Role::kSharedDown, at + "down_proj", writer.width(), inner);
}

void write_gated_as(SpecWriter& writer, std::string_view prefix, std::int64_t inner) {
  const std::string at(prefix);
  writer.linear_as(Role::kGate, at + "gate_proj", inner, writer.width());
  writer.linear_as(Role::kUp, at + "up_proj", inner, writer.width());
  writer.linear_as(Role::kDown, at + "down_proj", writer.width(), inner);
}

void set_plain_experts(KeyReader& keys, int experts, int per_token, ModelSpec& spec) {
  const Ffn dense = spec.layers.front().ffn;
  Ffn moe = read_moe(keys, dense, {experts, per_token, dense.intermediate_size});
  moe.expert_intermediate_size = dense.intermediate_size;
  for (Layer& layer : spec.layers) layer.ffn = moe;
}

std::optional<std::int64_t> read_window(KeyReader& keys, std::int64_t otherwise) {
  if (keys.has("sliding_window")) return keys.integer("sliding_window", 1, kMaxContext);
  if (keys.contains("sliding_window") || otherwise == 0) return std::nullopt;
  return otherwise;
}

void set_windows(ModelSpec& spec, std::optional<std::int64_t> window) {
  // A window as long as the context is none (Phi 3 with 128K).
  if (window && spec.context_tokens() > 0 && *window >= spec.context_tokens()) window.reset();
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.window_tokens = window; });
}

void read_windows(KeyReader& keys, std::optional<std::int64_t> window, std::int64_t pattern,
                  ModelSpec& spec) {
  if (read_layer_types(keys, window, spec)) return;
  if (pattern > 0 && window)
    set_window_pattern(spec, pattern, *window);
  else
    set_windows(spec, window);
}

void set_ffn_bias(ModelSpec& spec, bool has_bias) {
  for (Layer& layer : spec.layers) layer.ffn.has_bias = has_bias;
}

void set_qk_norm(ModelSpec& spec) {
  for_each_attention(spec, [](Attention& attention, std::size_t) { attention.has_qk_norm = true; });
}

ModelSpec read_unchecked_decoder(KeyReader& keys, const DecoderDefaults& defaults) {
  ModelSpec spec = read_config_decoder(keys, defaults);
  add_trait(spec, Trait::kUnknown);
  return spec;
}

void assume_activation(KeyReader& keys, Activation activation, ModelSpec& spec) {
  if (keys.has("hidden_act")) return;
  for (Layer& layer : spec.layers) layer.ffn.activation = activation;
}

void refuse_assumed_rope(KeyReader& keys, ModelSpec& spec) {
  if (!keys["rope_parameters"].is_object() && !keys["rope_scaling"].is_object())
    add_trait(spec, Trait::kOwnRope);
}

void turn_windows_only(std::optional<std::int64_t> window, ModelSpec& spec) {
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.uses_rope = !window || attention.window_tokens.has_value();
  });
}

void write_two_norms(SpecWriter& writer, bool has_bias) {
  writer.norm_as(Role::kAttentionNorm, "input_layernorm", writer.width(),
                 role_if(has_bias, Role::kAttentionNormBias));
  writer.norm_as(Role::kFfnNorm, "post_attention_layernorm", writer.width(),
                 role_if(has_bias, Role::kFfnNormBias));
}

}  // namespace plimsoll::model
