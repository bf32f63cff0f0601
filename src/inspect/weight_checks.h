// SPDX-License-Identifier: Apache-2.0
// Do the tensors fit the config? Names, shapes, layers, types, and the tied head. Reads headers, and the two
// embeddings where a tied head is stored. Pure but for that.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Holds the tensors against what the spec calls for. Says nothing about quantized checkpoints' packed
/// tensors, nor without a spec or weights.
void check_weights(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
