// SPDX-License-Identifier: Apache-2.0
// How do files hold the matrices of mixers with a state? Takes apart what they hold in one, so that the graph
// sees one form of each kind.
#pragma once

#include "engine/weights.h"

namespace plimsoll::engine {

/// Leaves what is convolved in `query_key_value` or in the layer's query, key and value, and gate, step and
/// beta on their own; convolutions of q, k and v become one. Decays become what multiplies a time step, those
/// of lightning attention what multiplies the state. `index`: of the layer.
void take_apart_state(const model::State& state, int index, std::size_t num_layers, LayerWeights& layer);

}  // namespace plimsoll::engine
