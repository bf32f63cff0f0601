// SPDX-License-Identifier: Apache-2.0
// Where does the weight of a role go? One row for each role that the engine has a place for. Pure.
#pragma once

#include <variant>
#include <vector>

#include "engine/fused_weights.h"
#include "engine/weights.h"

namespace plimsoll::engine {

/// Nothing for roles that have no place: check_embedded refuses models with such weights.
using Slot = std::variant<std::monostate, StoredMatrix*, std::vector<float>*, std::vector<StoredMatrix>*>;

/// Of a model's ends.
Slot slot_of(ModelWeights& weights, model::Role role);
/// Of a layer.
Slot slot_of(LayerWeights& layer, Fused& fused, model::Role role);

}  // namespace plimsoll::engine
