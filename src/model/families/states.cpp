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
          .recurrent_dtype = net.state_dtype};
}

void write_delta_net(SpecWriter& writer, const DeltaNet& net, bool is_fused) {
  const std::int64_t width = writer.width(), heads = net.value_heads;
  writer.add(Group::kState, "linear_attn.conv1d.weight", {net.channels(), 1, net.kernel});
  writer.add(Group::kState, "linear_attn.dt_bias", {heads});
  writer.add(Group::kState, "linear_attn.A_log", {heads});
  if (is_fused) {
    writer.linear(Group::kState, "linear_attn.in_proj_qkvz", net.channels() + net.value_width(), width);
    writer.linear(Group::kState, "linear_attn.in_proj_ba", 2 * heads, width);
  } else {
    writer.linear(Group::kState, "linear_attn.in_proj_qkv", net.channels(), width);
    writer.linear(Group::kState, "linear_attn.in_proj_z", net.value_width(), width);
    writer.linear(Group::kState, "linear_attn.in_proj_b", heads, width);
    writer.linear(Group::kState, "linear_attn.in_proj_a", heads, width);
  }
  writer.add(Group::kState, "linear_attn.norm.weight", {net.value_head_dim});
  writer.linear(Group::kState, "linear_attn.out_proj", width, net.value_width());
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
          .chunk_tokens = mamba.chunk_tokens};
}

void write_mamba(SpecWriter& writer, const Mamba& mamba, std::string_view prefix) {
  const std::string at(prefix);
  const std::int64_t width = writer.width(), inner = mamba.inner;
  const auto scan = [&](std::string_view name, std::vector<std::int64_t> shape) {
    writer.add(Group::kState, at + std::string(name), std::move(shape));
  };
  scan("conv1d.weight", {mamba.channels(), 1, mamba.kernel});
  if (mamba.has_convolution_bias) scan("conv1d.bias", {mamba.channels()});
  if (mamba.heads > 0) {
    writer.linear(Group::kState, at + "in_proj", inner + mamba.channels() + mamba.heads, width,
                  mamba.has_bias);
    for (const char* name : {"dt_bias", "A_log", "D"}) scan(name, {mamba.heads});
    if (mamba.has_gated_norm) scan("norm.weight", {inner});
  } else {
    writer.linear(Group::kState, at + "in_proj", 2 * inner, width, mamba.has_bias);
    writer.linear(Group::kState, at + "x_proj", mamba.time_rank + 2 * mamba.states, inner);
    writer.linear(Group::kState, at + "dt_proj", inner, mamba.time_rank, true);
    scan("A_log", {inner, mamba.states});
    scan("D", {inner});
    if (mamba.has_selection_norms) {
      scan("dt_layernorm.weight", {mamba.time_rank});
      scan("b_layernorm.weight", {mamba.states});
      scan("c_layernorm.weight", {mamba.states});
    }
  }
  writer.linear(Group::kState, at + "out_proj", width, inner, mamba.has_output_bias);
}

std::int64_t read_time_rank(KeyReader& keys, std::string_view key, int hidden_size) {
  const std::int64_t automatic = (std::int64_t{hidden_size} + 15) / 16;
  if (keys[key].as_string()) return automatic;  // "auto"
  return keys.integer(key, 1, kMaxWidth, automatic);
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

void double_queries(ModelSpec& spec) {
  for (Weight& weight : spec.weights)
    if (weight.role == Role::kQuery || weight.role == Role::kQueryBias) weight.shape.front() *= 2;
}

}  // namespace plimsoll::model
