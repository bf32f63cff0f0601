// SPDX-License-Identifier: Apache-2.0
#include "model/families/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

constexpr std::array<std::string_view, 5> kStateWords{"linear_attention", "mamba", "conv", "recurrent",
                                                      "mamba2"};
constexpr std::array<std::string_view, 4> kAttentionWords{"full_attention", "attention", "indexed_attention",
                                                          "sliding_attention"};

bool is_one_of(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

DeltaNet read_delta_net(KeyReader& keys) {
  DeltaNet net;
  net.key_heads = keys.count("linear_num_key_heads", kMaxHeads, 16);
  net.value_heads = keys.count("linear_num_value_heads", kMaxHeads, 32);
  net.key_head_dim = keys.count("linear_key_head_dim", kMaxHeadDim, 128);
  net.value_head_dim = keys.count("linear_value_head_dim", kMaxHeadDim, 128);
  net.kernel = keys.count("linear_conv_kernel_dim", kMaxKernel, 4);
  net.state_dtype = dtype_from_config(keys.text("mamba_ssm_dtype", ""));
  return net;
}

State state_of(const DeltaNet& net) {
  return {.kind = StateKind::kGatedDeltaNet,
          .heads = net.value_heads,
          .recurrent_elements = net.value_width() * net.key_head_dim,
          .convolution_elements = net.channels() * (net.kernel - 1),
          .kernel = net.kernel,
          .recurrent_dtype = net.state_dtype,
          .head_dim = net.value_head_dim,
          .state_size = net.key_head_dim,
          .key_heads = net.key_heads,
          .norms_before_gate = true,
          .norm_groups = net.value_heads};
}

void write_delta_net(SpecWriter& writer, const DeltaNet& net, bool is_fused) {
  const std::int64_t width = writer.width(), heads = net.value_heads;
  writer.role_as(Role::kStateConvolution, "linear_attn.conv1d.weight", {net.channels(), 1, net.kernel});
  writer.role_as(Role::kStateStepBias, "linear_attn.dt_bias", {heads});
  writer.role_as(Role::kStateDecay, "linear_attn.A_log", {heads});
  if (is_fused) {
    writer.linear_as(Role::kStateInput, "linear_attn.in_proj_qkvz", net.channels() + net.value_width(),
                     width);
    writer.linear_as(Role::kStateStepBeta, "linear_attn.in_proj_ba", 2 * heads, width);
  } else {
    writer.linear_as(Role::kStateQueryKeyValue, "linear_attn.in_proj_qkv", net.channels(), width);
    writer.linear_as(Role::kStateGate, "linear_attn.in_proj_z", net.value_width(), width);
    writer.linear_as(Role::kStateBeta, "linear_attn.in_proj_b", heads, width);
    writer.linear_as(Role::kStateStep, "linear_attn.in_proj_a", heads, width);
  }
  writer.role_as(Role::kStateNorm, "linear_attn.norm.weight", {net.value_head_dim});
  writer.linear_as(Role::kStateOutput, "linear_attn.out_proj", width, net.value_width());
}

State state_of(const Mamba& mamba) {
  return {.kind = mamba.heads > 0 ? StateKind::kMamba2 : StateKind::kMamba,
          .heads = mamba.heads,
          .recurrent_elements = mamba.inner * mamba.states,
          .convolution_elements = mamba.channels() * (mamba.kernel - 1),
          .kernel = static_cast<int>(mamba.kernel),
          .groups = mamba.heads > 0 ? mamba.groups : 0,
          .group_channels = mamba.heads > 0 ? 2 * mamba.states : 0,
          .recurrent_dtype = mamba.state_dtype,
          .is_recurrent_dtype_assumed = mamba.is_state_dtype_assumed,
          .chunk_tokens = mamba.chunk_tokens,
          .head_dim = static_cast<int>(mamba.heads > 0 ? mamba.inner / mamba.heads : 0),
          .state_size = static_cast<int>(mamba.states),
          .time_rank = static_cast<int>(mamba.time_rank),
          .least_step = mamba.least_step,
          .longest_step = mamba.longest_step,
          .norms_before_gate = mamba.norms_before_gate,
          .norm_groups = mamba.heads > 0 ? mamba.groups : 1};
}

void write_mamba(SpecWriter& writer, const Mamba& mamba, std::string_view prefix) {
  const std::string at(prefix);
  const std::int64_t width = writer.width(), inner = mamba.inner;
  const auto scan = [&](Role role, std::string_view name, std::vector<std::int64_t> shape) {
    writer.role_as(role, at + std::string(name), std::move(shape));
  };
  const auto input_bias = role_if(mamba.has_bias, Role::kStateInputBias);
  scan(Role::kStateConvolution, "conv1d.weight", {mamba.channels(), 1, mamba.kernel});
  if (mamba.has_convolution_bias) scan(Role::kStateConvolutionBias, "conv1d.bias", {mamba.channels()});
  if (mamba.heads > 0) {
    writer.linear_as(Role::kStateInput, at + "in_proj", inner + mamba.channels() + mamba.heads, width,
                     input_bias);
    scan(Role::kStateStepBias, "dt_bias", {mamba.heads});
    scan(Role::kStateDecay, "A_log", {mamba.heads});
    scan(Role::kStateSkip, "D", {mamba.heads});
    if (mamba.has_gated_norm) scan(Role::kStateNorm, "norm.weight", {inner});
  } else {
    writer.linear_as(Role::kStateInput, at + "in_proj", 2 * inner, width, input_bias);
    writer.linear_as(Role::kStateSelection, at + "x_proj", mamba.time_rank + 2 * mamba.states, inner);
    writer.linear_as(Role::kStateStepExpansion, at + "dt_proj", inner, mamba.time_rank, Role::kStateStepBias);
    scan(Role::kStateDecay, "A_log", {inner, mamba.states});
    scan(Role::kStateSkip, "D", {inner});
    if (mamba.has_selection_norms) {
      scan(Role::kStateStepNorm, "dt_layernorm.weight", {mamba.time_rank});
      scan(Role::kStateBNorm, "b_layernorm.weight", {mamba.states});
      scan(Role::kStateCNorm, "c_layernorm.weight", {mamba.states});
    }
  }
  writer.linear_as(Role::kStateOutput, at + "out_proj", width, inner,
                   role_if(mamba.has_output_bias, Role::kStateOutputBias));
}

std::int64_t read_time_rank(KeyReader& keys, std::string_view key, int hidden_size) {
  const std::int64_t automatic = (std::int64_t{hidden_size} + 15) / 16;
  if (keys[key].as_string()) return automatic;  // "auto"
  return keys.integer(key, 1, kMaxWidth, automatic);
}

namespace {

// Infinity is not JSON: where Python wrote it there is nothing, and transformers 5 writes an object.
bool is_infinite(const Json& value) {
  const std::string* word = value["__float__"].as_string();
  return value.is_null() || (word && *word == "Infinity");
}

}  // namespace

void read_step_limit(KeyReader& keys, Mamba& mamba) {
  const Json& limit = keys["time_step_limit"];
  if (limit.is_null()) return;
  const bool is_pair = limit.is_array() && limit.size() == 2;
  const auto least = is_pair ? limit.items()[0].as_double() : std::nullopt;
  auto longest = is_pair ? limit.items()[1].as_double() : std::nullopt;
  if (is_pair && is_infinite(limit.items()[1])) longest = std::numeric_limits<double>::infinity();
  if (!least || !longest || !(*least >= 0) || !(*least <= *longest))
    return keys.add_error(ErrorCode::kMalformed, "time_step_limit",
                          "reading the model: time_step_limit is not a range of numbers from 0 up");
  mamba.least_step = *least;
  mamba.longest_step = *longest;
}

std::int64_t read_chunk(KeyReader& keys, std::int64_t otherwise) {
  const char* key = keys.has("mamba_chunk_size") ? "mamba_chunk_size" : "chunk_size";
  return keys.integer(key, 1, kMaxContext, otherwise);
}

Mamba read_mamba2(KeyReader& keys, int hidden_size, const Mamba& defaults) {
  Mamba mamba = defaults;
  const std::int64_t expand = keys.integer("mamba_expand", 1, 64, 2);
  mamba.inner = keys.integer("mamba_d_ssm", 1, kMaxWidth * 64, expand * hidden_size);
  mamba.heads = keys.count("mamba_n_heads", kMaxHeads, defaults.heads);
  mamba.groups = keys.count("mamba_n_groups", kMaxHeads, defaults.groups);
  mamba.states = keys.count("mamba_d_state", kMaxWidth, defaults.states);
  mamba.kernel = keys.count("mamba_d_conv", kMaxKernel, defaults.kernel);
  mamba.chunk_tokens = read_chunk(keys, 256);
  mamba.has_convolution_bias = keys.truth("mamba_conv_bias", true);
  mamba.has_bias = mamba.has_output_bias = keys.flag("mamba_proj_bias", false);
  read_step_limit(keys, mamba);
  return mamba;
}

std::vector<std::string> read_layer_words(KeyReader& keys, std::string_view key, std::size_t num_layers) {
  const Json& list = keys[key];
  if (list.is_null()) return {};
  std::vector<std::string> words;
  if (list.is_array() && list.size() == num_layers)
    for (const Json& item : list.items()) words.push_back(item.as_string() ? *item.as_string() : "");
  if (words.size() != num_layers) {
    keys.add_error(
        ErrorCode::kMalformed, key,
        fmt::format("reading the model: {} is not a list of a word for each of {} layers", key, num_layers));
    words.assign(num_layers, "");
  }
  return words;
}

bool read_state_layers(KeyReader& keys, const State& state, ModelSpec& spec) {
  const auto words = read_layer_words(keys, "layer_types", spec.layers.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    if (is_one_of(kStateWords, words[i]))
      spec.layers[i].mixer = state;
    else if (!is_one_of(kAttentionWords, words[i]))
      keys.add_error(ErrorCode::kUnsupported, "layer_types",
                     fmt::format("reading the model: layer {} is of the unknown type \"{}\"", i,
                                 words[i].substr(0, 60)));
  return !words.empty();
}

void set_state_layers(KeyReader& keys, const State& state, ModelSpec& spec) {
  if (read_state_layers(keys, state, spec)) return;
  const auto interval = static_cast<std::size_t>(keys.integer("full_attention_interval", 1, kMaxLayers, 4));
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    if ((i + 1) % interval != 0) spec.layers[i].mixer = state;
}

}  // namespace plimsoll::model
