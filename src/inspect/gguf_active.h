// SPDX-License-Identifier: Apache-2.0
// How many parameters of a GGUF file does one token use? From its tensors and its counts of experts, whatever
// the architecture. Pure.
#pragma once

#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills parameters.active and active_without_embedding where they are not known yet: all of a file without
/// experts; of a mixture, of its stacks of experts (ffn_*_exps) only what a token is routed to. A file whose
/// stacks have no counts of experts gets ACTIVE_UNKNOWN (info). Wants parameters.by_group.
void count_active_of_gguf(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
