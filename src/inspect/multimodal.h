// SPDX-License-Identifier: Apache-2.0
// Which inputs beside text does the model take, and by how many tokens do usual ones lengthen a prompt?
// Leaves the counting to model's rules; reads the processor files and, where a rule writes text between its
// tokens, the folder's tokenizer. Nothing is read for a model of text alone.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.multimodal and appends why a count is not known.
/// Source: docs/formulas/image_tokens.md.
void read_multimodal(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
