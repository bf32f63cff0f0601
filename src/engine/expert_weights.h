// SPDX-License-Identifier: Apache-2.0
// Where are the matrices of a mixture's experts? Each under a name of its own, all in one tensor, or stacked
// in blocks of four-bit floats. Views of the artifact, which has to outlive them.
#pragma once

#include <optional>
#include <vector>

#include "artifact/artifact.h"
#include "base/result.h"
#include "engine/weights.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::engine {

/// True for roles of which every expert has a part.
bool is_of_experts(model::Role role);

/// Every expert's part of one weight; `experts` grows to their number. Gates and ups in one matrix are taken
/// apart: one after the other, or in turn where they alternate. Errors: as load_weights.
Status load_experts(const artifact::Artifact& artifact, const model::Weight& weight,
                    const std::optional<model::Quantization>& declared, bool alternates_gate_up,
                    std::vector<FfnWeights>& experts);

}  // namespace plimsoll::engine
