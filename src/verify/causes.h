// SPDX-License-Identifier: Apache-2.0
// Inside the verify room: why does a log differ from its plan? Each cause with its arithmetic and what to
// turn. A cause is named where its own figures say so; several may hold at once. Pure.
#pragma once

#include <vector>

#include "verify/predicted.h"
#include "verify/verify.h"

namespace plimsoll::verify {

/// By likelihood.
std::vector<Cause> find_causes(const Predicted& plan, const EngineStart& run,
                               const std::vector<Delta>& deltas);

/// a * b held within what an integer of bytes can say.
std::int64_t bounded_product(double a, double b);

}  // namespace plimsoll::verify
