// SPDX-License-Identifier: Apache-2.0
// The part of the page for people that tells what stands around the weights: licence, claims, defaults,
// maximum input, splits, engines, environment. Pure.
#pragma once

#include <string>

#include "inspect/inspect.h"

namespace plimsoll::inspect {

/// Lines, with an empty one before them; empty when there is nothing to tell.
std::string deployment_text(const Report& report);

}  // namespace plimsoll::inspect
