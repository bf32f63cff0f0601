// SPDX-License-Identifier: Apache-2.0
// Does the model's card, or its name, claim another size than the files have? Claims are what claims.h finds;
// measured figures are the report's. Pure.
#pragma once

#include <string>

#include "base/json.h"
#include "inspect/inspect.h"
#include "inspect/model_card.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.card_claims {total, active, context_tokens} and appends CARD_TOTAL, CARD_ACTIVE, CARD_CONTEXT
/// and NAME_SIZE findings. Wants report.parameters and report.context. `card` may be null.
void check_card(const Subject& subject, const ModelCard* card, Report& report);

/// What the model is called: the last part of its id or of its folder's name, general.name of a GGUF.
std::string model_name(const Subject& subject, const Report& report);

}  // namespace plimsoll::inspect
