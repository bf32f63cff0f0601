// SPDX-License-Identifier: Apache-2.0
// How many parameters and bytes? Counts from the tensors' headers where there are weights, else from the
// spec. Pure.
#pragma once

#include <optional>

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.parameters and report.weights from the artifact and report.spec.
void measure_sizes(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
