// SPDX-License-Identifier: Apache-2.0
// What total does the hub show for a model of which only the config is at hand, and which causes set it apart
// from the model's own parameters? Published totals come from the catalogue; without one, what the config
// declares is taken as stored. With weight files sizes.cpp counts their headers. Pure functions.
#pragma once

#include <optional>

#include "inspect/inspect.h"
#include "inspect/subject.h"
#include "model/quantization.h"

namespace plimsoll::inspect {

/// Fills `weights.bytes`, `parameters.hub_total` and `parameters.differences` from the spec.
/// A published total that no known causes explain leaves hub_total empty, with the finding
/// HUB_TOTAL_UNEXPLAINED. Source: docs/formulas/weights.md.
void estimate_checkpoint(const Subject& subject, const std::optional<model::Quantization>& declared,
                         Report& report);

}  // namespace plimsoll::inspect
