// SPDX-License-Identifier: Apache-2.0
// The feed-forward half of engine/graph.h: dense layers, mixtures of experts, shared experts.
#include <algorithm>
#include <cmath>

#include "engine/graph_parts.h"
#include "kernels/elementwise.h"

namespace plimsoll::engine {
namespace {

kernels::Activation kernel_of(model::Activation activation) {
  switch (activation) {
    case model::Activation::kSilu:
      return kernels::Activation::kSilu;
    case model::Activation::kGelu:
      return kernels::Activation::kGelu;
    case model::Activation::kGeluTanh:
      return kernels::Activation::kGeluTanh;
    case model::Activation::kRelu:
      return kernels::Activation::kRelu;
    case model::Activation::kRelu2:
      return kernels::Activation::kRelu2;
    case model::Activation::kClampedSwiglu:
    case model::Activation::kXielu:
    case model::Activation::kOther:
      break;
  }
  PLIMSOLL_CHECK(false, "check_embedded admits only known activations");
  return kernels::Activation::kSilu;
}

// out may be gate or up.
void activate_gated(const kernels::Kernels& kernels, const model::Ffn& ffn, const float* gate,
                    const float* up, std::int64_t width, float* out) {
  if (ffn.activation == model::Activation::kClampedSwiglu)
    kernels::clamped_swiglu(static_cast<float>(ffn.swiglu_alpha), static_cast<float>(ffn.swiglu_limit), gate,
                            up, width, out);
  else if (ffn.activation == model::Activation::kSilu)
    kernels.silu_mul(gate, up, width, out);
  else
    kernels::activate_gated(kernel_of(ffn.activation), gate, up, width, out);
}

}  // namespace

// The largest mixture of the model, in a step of all rows.
void Graph::allocate_experts() {
  const auto max_rows = normed_.size() / static_cast<std::size_t>(spec_.hidden_size);
  std::size_t experts = 0, per_token = 0;
  for (const auto& layer : spec_.layers) {
    if (layer.ffn.kind != model::FfnKind::kMoe) continue;
    experts = std::max(experts, static_cast<std::size_t>(layer.ffn.experts));
    per_token = std::max(per_token, static_cast<std::size_t>(layer.ffn.experts_per_token));
  }
  mixture_.gathered.resize(normed_.size());
  mixture_.output.resize(normed_.size());
  mixture_.scores.resize(max_rows * experts);
  mixture_.chosen.resize(max_rows * per_token);
  mixture_.places.resize(max_rows * per_token);
  mixture_.offsets.resize(experts + 1);
}

// Whether nothing but the activation stands between the panels of gate and up and those of down.
bool Graph::is_fused(const FfnWeights& weights, const model::Ffn& ffn) const {
  const auto are_panels = [](const StoredMatrix& matrix) {
    return std::holds_alternative<PanelRows>(matrix.stored);
  };
  return ffn.is_gated && ffn.gate_scale == 1.0 && weights.up_bias.empty() && weights.gate_bias.empty() &&
         weights.inner_norm.empty() && are_panels(weights.up) && are_panels(weights.gate) &&
         are_panels(weights.down) && weights.gate.rows == weights.up.rows &&
         weights.up.rows % kernels::kPanelRows == 0;
}

// Panels of gate and up side by side, the activation behind them, and what it gives rounded for down: a panel
// has as many rows as a block of inputs. It is left in up_ as well.
Graph::Rounded Graph::gate_panels(const FfnWeights& weights, const model::Ffn& ffn, const float* input,
                                  std::int64_t num_rows) {
  static_assert(kernels::kPanelRows == kernels::kInt8Block);
  const std::int64_t width = weights.up.rows, panels = width / kernels::kPanelRows;
  const Product gate{&weights.gate, gate_.data(), width}, up{&weights.up, up_.data(), width};
  const Product both[] = {gate, up};
  const Rounded rounded = round_inputs(both, input, num_rows);
  // The second half of codes_: one plane of inputs in eight bits fits the first, however wide; in bf16 it may
  // not, and is still read when the first codes are written.
  kernels::Int8Block* const codes = codes_.data() + std::ssize(codes_) / 2;
  const bool takes = takes_codes(weights.down) && rounded.form != Rounded::Form::kPairs;
  const std::int64_t share = rows_per_chunk(weights.up, num_rows);
  team_.run(divided_up(width, share), [&](std::int64_t chunk, int thread) {
    const std::int64_t begin = chunk * share, end = std::min(begin + share, width);
    multiply_some(gate, begin, end, rounded, num_rows, thread);
    multiply_some(up, begin, end, rounded, num_rows, thread);
    for (std::int64_t r = 0; r < num_rows; ++r) {
      float* const values = up_.data() + r * width + begin;
      activate_gated(kernels_, ffn, gate_.data() + r * width + begin, values, end - begin, values);
      if (takes)
        kernels_.to_int8_blocks(values, (end - begin) / kernels::kInt8Block, 1,
                                codes + r * panels + begin / kernels::kInt8Block);
    }
  });
  if (takes) return {.form = Rounded::Form::kCodes, .floats = up_.data(), .codes = codes};
  const Product down[] = {{&weights.down, nullptr, 0}};
  return round_inputs(down, up_.data(), num_rows);
}

// What stands before down, in up_, row by row.
void Graph::gate_rows(const FfnWeights& weights, const model::Ffn& ffn, const float* input,
                      std::int64_t num_rows) {
  const std::int64_t width = weights.up.rows;  // at most the planned width of gate_ and up_
  const Product gate_up[] = {{&weights.up, up_.data(), width}, {&weights.gate, gate_.data(), width}};
  multiply(std::span(gate_up).first(ffn.is_gated ? 2 : 1), input, num_rows);
  each_row(team_, num_rows, [&](std::int64_t r) {
    float* up = up_.data() + r * width;
    add_bias(weights.up_bias, up);
    if (ffn.is_gated) {
      float* gate = gate_.data() + r * width;
      add_bias(weights.gate_bias, gate);
      multiply_by(ffn.gate_scale, width, gate);
      activate_gated(kernels_, ffn, gate, up, width, up);
    } else if (ffn.activation == model::Activation::kXielu) {
      kernels::xielu({weights.xielu[0][0], weights.xielu[1][0], weights.xielu[2][0], weights.xielu[3][0]},
                     width, up);
    } else {
      kernels::activate(kernel_of(ffn.activation), width, up);
    }
    if (!weights.inner_norm.empty())
      kernels_.rms_norm(up, weights.inner_norm.data(), width, static_cast<float>(spec_.norm_eps), up);
  });
}

void Graph::feed_forward(const FfnWeights& weights, const model::Ffn& ffn, const float* input,
                         std::int64_t num_rows, float* output) {
  const Product down[] = {{&weights.down, output, spec_.hidden_size}};
  if (is_fused(weights, ffn)) {
    multiply(down, gate_panels(weights, ffn, input, num_rows), num_rows);
  } else {
    gate_rows(weights, ffn, input, num_rows);
    multiply(down, up_.data(), num_rows);
  }
  if (weights.down_bias.empty() && ffn.output_scale == 1.0) return;
  each_row(team_, num_rows, [&](std::int64_t r) {
    add_bias(weights.down_bias, output + r * spec_.hidden_size);
    multiply_by(ffn.output_scale, spec_.hidden_size, output + r * spec_.hidden_size);
  });
}

// Which rows each expert computes: rows of expert e are places [offsets[e], offsets[e + 1]), ascending.
void Graph::sort_by_expert(std::int64_t num_rows, const model::Ffn& ffn) {
  const std::int64_t num_choices = num_rows * ffn.experts_per_token;
  auto& offsets = mixture_.offsets;
  std::fill(offsets.begin(), offsets.end(), 0);
  for (std::int64_t i = 0; i < num_choices; ++i)
    ++offsets[static_cast<std::size_t>(mixture_.chosen[static_cast<std::size_t>(i)].expert) + 1];
  for (std::size_t e = 1; e < offsets.size(); ++e) offsets[e] += offsets[e - 1];
  for (std::int64_t i = 0; i < num_choices; ++i) {
    const auto expert = static_cast<std::size_t>(mixture_.chosen[static_cast<std::size_t>(i)].expert);
    mixture_.places[static_cast<std::size_t>(offsets[expert]++)] = static_cast<std::int32_t>(i);
  }
  // Each offset has moved to the next one's place.
  std::copy_backward(offsets.begin(), offsets.end() - 1, offsets.end());
  offsets.front() = 0;
}

// A row's sum goes through its experts in ascending order, whoever else is in the step.
void Graph::mixture(std::int64_t num_rows, int layer, const float* input, float* output) {
  const model::Ffn& ffn = spec_.layers[static_cast<std::size_t>(layer)].ffn;
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t hidden = spec_.hidden_size, per_token = ffn.experts_per_token;
  const Product router[] = {{&weights.router, mixture_.scores.data(), ffn.experts}};
  multiply(router, input, num_rows);
  each_row(team_, num_rows, [&](std::int64_t r) {
    float* scores = mixture_.scores.data() + r * ffn.experts;
    add_bias(weights.router_bias, scores);
    choose_experts(ffn.router, {scores, static_cast<std::size_t>(ffn.experts)}, weights.score_bias,
                   {mixture_.chosen.data() + r * per_token, static_cast<std::size_t>(per_token)});
  });
  sort_by_expert(num_rows, ffn);
  std::fill(output, output + num_rows * hidden, 0.0F);
  for (std::size_t e = 0; e < weights.experts.size(); ++e) {
    const std::int64_t first = mixture_.offsets[e], count = mixture_.offsets[e + 1] - first;
    if (count == 0) continue;
    const std::int32_t* places = mixture_.places.data() + first;
    const auto weight_of = [&](std::int64_t i) {
      return mixture_.chosen[static_cast<std::size_t>(places[i])].weight;
    };
    for (std::int64_t i = 0; i < count; ++i) {
      float* row = mixture_.gathered.data() + i * hidden;
      std::copy_n(input + places[i] / per_token * hidden, hidden, row);
      if (ffn.router.scales_input) multiply_by(static_cast<double>(weight_of(i)), hidden, row);
    }
    feed_forward(weights.experts[e], ffn, mixture_.gathered.data(), count, mixture_.output.data());
    for (std::int64_t i = 0; i < count; ++i)
      kernels_.add_scaled_f32(ffn.router.scales_input ? 1.0F : weight_of(i),
                              mixture_.output.data() + i * hidden, hidden,
                              output + places[i] / per_token * hidden);
  }
  if (weights.shared.up.rows > 0) add_shared_experts(num_rows, layer, input, output);
}

void Graph::add_shared_experts(std::int64_t num_rows, int layer, const float* input, float* output) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t hidden = spec_.hidden_size;
  feed_forward(weights.shared, spec_.layers[static_cast<std::size_t>(layer)].ffn, input, num_rows,
               mixture_.output.data());
  float* gates = mixture_.scores.data();  // nobody reads the scores any more
  if (weights.shared_gate.rows > 0) {
    const Product gate[] = {{&weights.shared_gate, gates, 1}};
    multiply(gate, input, num_rows);
  }
  for (std::int64_t r = 0; r < num_rows; ++r) {
    const float weight = weights.shared_gate.rows > 0 ? 1.0F / (1.0F + std::exp(-gates[r])) : 1.0F;
    kernels_.add_scaled_f32(weight, mixture_.output.data() + r * hidden, hidden, output + r * hidden);
  }
}

void Graph::ffn_block(std::int64_t num_rows, int layer, const float* input, float* output) {
  const model::Ffn& ffn = spec_.layers[static_cast<std::size_t>(layer)].ffn;
  if (ffn.kind == model::FfnKind::kMoe) return mixture(num_rows, layer, input, output);
  feed_forward(weights_.layers[static_cast<std::size_t>(layer)].ffn, ffn, input, num_rows, output);
}

}  // namespace plimsoll::engine
