// SPDX-License-Identifier: Apache-2.0
#include "engine/state_weights.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "memory/embedded.h"

namespace plimsoll::engine {
namespace {

using Kind = model::StateKind;

// in_proj of Mamba 1: x, gate.
void take_apart_mamba(const model::State& state, StateWeights& weights) {
  const std::int64_t inner = state.rows();
  weights.query_key_value = some_rows(weights.input, inner, {0, 0, 0});
  weights.gate = some_rows(weights.input, inner, {inner, 0, 0});
}

// in_proj of Mamba 2: gate, what is convolved, steps. Its bias moves with the rows.
void take_apart_mamba2(const model::State& state, StateWeights& weights) {
  const std::int64_t inner = state.rows(), channels = state.channels();
  weights.gate = some_rows(weights.input, inner, {0, 0, 0});
  weights.query_key_value = some_rows(weights.input, channels, {inner, 0, 0});
  weights.step = some_rows(weights.input, state.heads, {inner + channels, 0, 0});
  if (!weights.input_bias.empty())
    std::rotate(weights.input_bias.begin(), weights.input_bias.begin() + inner,
                weights.input_bias.begin() + inner + channels);
}

// in_proj of a short convolution: what gates its input, the output's gate, the input. So does its bias.
void take_apart_short_convolution(const model::State& state, StateWeights& weights) {
  const std::int64_t width = state.channels();
  weights.step = some_rows(weights.input, width, {0, 0, 0});
  weights.gate = some_rows(weights.input, width, {width, 0, 0});
  weights.query_key_value = some_rows(weights.input, width, {2 * width, 0, 0});
  if (!weights.input_bias.empty())
    std::swap_ranges(weights.input_bias.begin(), weights.input_bias.begin() + width,
                     weights.input_bias.begin() + 2 * width);
}

// in_proj_qkvz and in_proj_ba of Qwen 3-Next: of each key head q, k, and v and z of the heads that share it;
// then beta and decay of those heads.
void take_apart_delta_net(const model::State& state, LayerWeights& layer) {
  StateWeights& weights = layer.state;
  const std::int64_t shared = state.heads / state.key_heads;
  if (weights.input.rows > 0) {
    const std::int64_t key = state.state_size, value = shared * state.head_dim;
    const std::int64_t step = 2 * key + 2 * value, keys = state.key_heads * key;
    layer.query = some_rows(weights.input, keys, {0, key, step});
    layer.key = some_rows(weights.input, keys, {key, key, step});
    layer.value = some_rows(weights.input, state.rows(), {2 * key, value, step});
    weights.gate = some_rows(weights.input, state.rows(), {2 * key + value, value, step});
  }
  if (weights.step_beta.rows > 0) {
    weights.beta = some_rows(weights.step_beta, state.heads, {0, shared, 2 * shared});
    weights.step = some_rows(weights.step_beta, state.heads, {shared, shared, 2 * shared});
  }
}

// qkv_proj of lightning attention: q, k and v head by head.
void take_apart_lightning(const model::State& state, LayerWeights& layer) {
  const StoredMatrix all = std::exchange(layer.state.query_key_value, {});
  const std::int64_t dim = state.head_dim;
  layer.query = some_rows(all, state.rows(), {0, dim, 3 * dim});
  layer.key = some_rows(all, state.rows(), {dim, dim, 3 * dim});
  layer.value = some_rows(all, state.rows(), {2 * dim, dim, 3 * dim});
}

/// How fast each head of lightning attention forgets. Source: MiniMaxLightningAttention.get_slope_rate.
std::vector<float> lightning_slopes(int heads, int index, std::size_t num_layers) {
  std::vector<float> slopes;
  const double factor = 1.0 - index / (static_cast<double>(num_layers) - 1.0 + 1e-5) + 1e-5;
  for (int head = 0; head < heads; ++head)
    slopes.push_back(static_cast<float>(std::pow(2.0, -8.0 * (head + 1) / heads) * factor));
  return slopes;
}

}  // namespace

void take_apart_state(const model::State& state, int index, std::size_t num_layers, LayerWeights& layer) {
  StateWeights& weights = layer.state;
  if (state.kind == Kind::kMamba) take_apart_mamba(state, weights);
  if (state.kind == Kind::kMamba2) take_apart_mamba2(state, weights);
  if (state.kind == Kind::kShortConv) take_apart_short_convolution(state, weights);
  if (state.kind == Kind::kGatedDeltaNet) take_apart_delta_net(state, layer);
  if (state.kind == Kind::kLightning) take_apart_lightning(state, layer);
  for (const auto* part : {&weights.query_convolution, &weights.key_convolution, &weights.value_convolution})
    weights.convolution.insert(weights.convolution.end(), part->begin(), part->end());
  if (state.kind == Kind::kLightning) {
    weights.decay = lightning_slopes(state.heads, index, num_layers);
    for (float& value : weights.decay) value = std::exp(-value);
    return;
  }
  for (float& value : weights.decay) value = -std::exp(value);  // stored as its logarithm
}

}  // namespace plimsoll::engine
