// SPDX-License-Identifier: Apache-2.0
// Do all that declare how the weights are quantized say the same, and does the config say it at all? Who they
// are: model/declarations.h. Pure.
#pragma once

#include "inspect/subject.h"

namespace plimsoll::inspect {

/// QUANT_DECLARATIONS_DIFFER for each that disagrees with the first; QUANT_UNDECLARED where only a file
/// beside config.json tells.
void check_declarations(const Subject& subject, Findings& findings);

}  // namespace plimsoll::inspect
