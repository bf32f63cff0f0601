// SPDX-License-Identifier: Apache-2.0
// What does a file hold in one matrix that the graph reads apart? Queries, keys and values; gates and ups;
// queries and the gates of their heads. Views: the bytes stay where they are.
#pragma once

#include <vector>

#include "engine/weights.h"
#include "model/model.h"

namespace plimsoll::engine {

/// What a layer's file holds in one, until it is taken apart.
struct Fused {
  StoredMatrix qkv, gate_up, shared_gate_up;
  StoredMatrix latent_expansion;  // [heads * (nope + v), kv_lora]
  std::vector<float> qkv_bias, gate_up_bias;
};

/// Puts the parts of `fused`, and a query matrix that holds gates, where the graph looks for them.
void take_apart(const model::ModelSpec& spec, std::size_t layer, const Fused& fused, LayerWeights& weights);

/// The gate's and the up's rows of one matrix or bias: one after the other, or in turn.
void take_gate_up(const StoredMatrix& both, bool alternates, FfnWeights& ffn);
void take_gate_up_bias(const std::vector<float>& both, bool alternates, FfnWeights& ffn);

}  // namespace plimsoll::engine
