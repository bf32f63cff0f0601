// SPDX-License-Identifier: Apache-2.0
// Does every JSON file beside config and weights read as what it is? Checks of what stands in them are made
// elsewhere, and take an unreadable file for an absent one. Pure.
#pragma once

#include "inspect/subject.h"

namespace plimsoll::inspect {

/// TOK_JSON, TMPL_JSON, PROC_JSON and QUANT_JSON.
void check_sidecars(const Subject& subject, Findings& findings);

}  // namespace plimsoll::inspect
