// SPDX-License-Identifier: Apache-2.0
// The layers of a model for people: one line for all that are alike, wherever they stand. Pure.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inspect/inspect.h"

namespace plimsoll::inspect {

/// (label, text) of each kind of layer, in the order in which they first appear.
std::vector<std::pair<std::string, std::string>> layer_lines(const std::vector<LayerRun>& runs);

}  // namespace plimsoll::inspect
