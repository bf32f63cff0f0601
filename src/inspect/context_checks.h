// SPDX-License-Identifier: Apache-2.0
// How many tokens may a sequence have? Every place that states a length, what the weights were trained for,
// what the declared rotary scaling reaches, what vLLM takes by default, whether a stated window is in effect,
// and what is left for the input. Pure.
#pragma once

#include "base/json.h"
#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.context except its maximum input; lengths that cannot be meant are skipped with a finding.
/// Wants report.spec. Source: docs/formulas/context.md.
void read_context(const Subject& subject, Report& report);

/// Fills report.context.maximum_input, which needs report.generation_defaults: the length less what the
/// answer is given and less what the chat template adds. Loads the tokenizer.
void measure_maximum_input(const Subject& subject, Report& report);

/// The document's object `context`.
Json context_json(const Context& context);

}  // namespace plimsoll::inspect
