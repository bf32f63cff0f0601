// SPDX-License-Identifier: Apache-2.0
// Under which licence are these weights, and what does it allow? The id that card, GGUF keys or LICENSE file
// name, looked up in the facts' table of terms. No legal advice: the terms are a reading of the text, and a
// licence that is not in the table stays unknown. Pure.
#pragma once

#include "inspect/inspect.h"
#include "inspect/model_card.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.license and report.license_terms {id, name, commercial_use, redistribution, derivatives,
/// gated, conditions, source}, where what is not known is null, and appends LICENSE_* findings. `card` may be
/// null.
void check_license(const Subject& subject, const ModelCard* card, Report& report);

}  // namespace plimsoll::inspect
