// SPDX-License-Identifier: Apache-2.0
// Will generation start and stop where it should? Special tokens, stop ids, and where chat templates come
// from, out of all the files that state them. Pure.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.tokenizer and appends what is wrong. Reads tokenizer.json where there is one.
void check_tokens(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
