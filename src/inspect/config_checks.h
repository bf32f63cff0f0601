// SPDX-License-Identifier: Apache-2.0
// Do the config's values make sense by themselves? Types, ranges, heads, rope kinds, code of others; works
// for architectures that no family reads too. Pure.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Checks config.json (or GGUF keys) and appends what is wrong. `spec_error` is why no spec could be read, if
/// so; it becomes a finding unless a check told the same place already.
void check_config(const Subject& subject, const std::optional<Error>& spec_error, Findings& findings);

/// Tells which essential figures the config leaves to its class, and which it writes as null.
void check_assumed(const Subject& subject, const model::ModelSpec& spec, Findings& findings);

}  // namespace plimsoll::inspect
