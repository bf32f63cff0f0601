// SPDX-License-Identifier: Apache-2.0
// Which engines can serve this model, with which of its features? The facts' rows for its architecture and
// quantization, and this program's own answer, which its memory room gives. Pure.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.support, an array of {engine, since, until, status, features{multimodal, lora, mtp,
/// quantization, reasoning_parser, tool_call_parser}, note, source}; null in a row means not known.
/// Finding SUPPORT_REMOVED (info) for an architecture that an engine gave up.
void check_support(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
