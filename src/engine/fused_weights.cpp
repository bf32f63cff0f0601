// SPDX-License-Identifier: Apache-2.0
#include "engine/fused_weights.h"

namespace plimsoll::engine {
namespace {

std::vector<float> some_values(const std::vector<float>& values, std::int64_t count, const RowRuns& runs) {
  std::vector<float> some;
  for (std::int64_t i = 0; i < count && !values.empty(); ++i)
    some.push_back(values[static_cast<std::size_t>(runs.at(i))]);
  return some;
}

void take_apart_qkv(const model::Attention& attention, model::FusedRows order, const Fused& fused,
                    LayerWeights& layer) {
  const std::int64_t q = std::int64_t{attention.q_heads} * attention.head_dim;
  const std::int64_t k = std::int64_t{attention.kv_heads} * attention.head_dim;
  const std::int64_t v = std::int64_t{attention.kv_heads} * attention.value_dim();
  RowRuns queries{0, 0, 0}, keys{q, 0, 0}, values{q + k, 0, 0};
  if (order != model::FusedRows::kStacked) {
    const std::int64_t dim = attention.head_dim;
    const std::int64_t shared =
        order == model::FusedRows::kPerGroup ? attention.q_heads / attention.kv_heads : 1;
    const std::int64_t step = (shared + 2) * dim;
    queries = {0, shared * dim, step};
    keys = {shared * dim, dim, step};
    values = {(shared + 1) * dim, dim, step};
  }
  layer.query = some_rows(fused.qkv, q, queries);
  layer.key = some_rows(fused.qkv, k, keys);
  layer.value = some_rows(fused.qkv, v, values);
  layer.query_bias = some_values(fused.qkv_bias, q, queries);
  layer.key_bias = some_values(fused.qkv_bias, k, keys);
  layer.value_bias = some_values(fused.qkv_bias, v, values);
}

// Head by head the query, then its gate.
void take_gates(const model::Attention& attention, LayerWeights& layer) {
  const std::int64_t dim = attention.head_dim, rows = attention.q_heads * dim;
  const RowRuns queries{0, dim, 2 * dim}, gates{dim, dim, 2 * dim};
  const StoredMatrix both = layer.query;
  const std::vector<float> biases = layer.query_bias;
  layer.query = some_rows(both, rows, queries);
  layer.output_gate = some_rows(both, rows, gates);
  layer.query_bias = some_values(biases, rows, queries);
  layer.output_gate_bias = some_values(biases, rows, gates);
}

// Keys and values of each head in turn.
void take_apart_latent(const model::Latent& latent, const StoredMatrix& expansion, LatentWeights& weights) {
  const std::int64_t step = std::int64_t{latent.qk_nope_head_dim} + latent.v_head_dim;
  for (std::int64_t row = 0; row < expansion.rows; row += step) {
    weights.keys.push_back(some_rows(expansion, latent.qk_nope_head_dim, {row, 0, 0}));
    weights.values.push_back(some_rows(expansion, latent.v_head_dim, {row + latent.qk_nope_head_dim, 0, 0}));
  }
}

RowRuns gate_rows(bool alternates) {
  return alternates ? RowRuns{0, 1, 2} : RowRuns{0, 0, 0};
}

RowRuns up_rows(bool alternates, std::int64_t inner) {
  return alternates ? RowRuns{1, 1, 2} : RowRuns{inner, 0, 0};
}

}  // namespace

void take_gate_up(const StoredMatrix& both, bool alternates, FfnWeights& ffn) {
  const std::int64_t inner = both.rows / 2;
  ffn.gate = some_rows(both, inner, gate_rows(alternates));
  ffn.up = some_rows(both, inner, up_rows(alternates, inner));
}

void take_gate_up_bias(const std::vector<float>& both, bool alternates, FfnWeights& ffn) {
  const auto inner = static_cast<std::int64_t>(both.size()) / 2;
  ffn.gate_bias = some_values(both, inner, gate_rows(alternates));
  ffn.up_bias = some_values(both, inner, up_rows(alternates, inner));
}

void take_apart(const model::ModelSpec& spec, std::size_t layer, const Fused& fused, LayerWeights& weights) {
  const auto* attention = std::get_if<model::Attention>(&spec.layers[layer].mixer);
  if (attention && fused.qkv.rows > 0) take_apart_qkv(*attention, spec.fused_qkv, fused, weights);
  if (attention && attention->has_output_gate && !attention->is_gate_apart) take_gates(*attention, weights);
  if (fused.latent_expansion.rows > 0)
    take_apart_latent(std::get<model::Latent>(spec.layers[layer].mixer), fused.latent_expansion,
                      weights.latent);
  else
    weights.latent.are_keys_turned = !weights.latent.keys.empty();
  if (fused.shared_gate_up.rows > 0) take_gate_up(fused.shared_gate_up, false, weights.shared);
  if (fused.gate_up.rows == 0) return;
  take_gate_up(fused.gate_up, false, weights.ffn);
  take_gate_up_bias(fused.gate_up_bias, false, weights.ffn);
}

}  // namespace plimsoll::engine
