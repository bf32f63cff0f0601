// SPDX-License-Identifier: Apache-2.0
// Inside the verify room: which model and flags does a start of vLLM state of itself, and what does the
// planner say of them? Only models of the catalogue are planned: what a log names is never opened. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "verify/log_reader.h"

namespace plimsoll::verify {

/// Takes what the line states into `settings`, by the engine's own names; true when it is such a line: the
/// engine's config, or the flags that were given.
bool read_settings(std::string_view line, std::map<std::string, std::string>& settings);

/// The ranks that a start states under the engine's name for them, `printed` where its config line was read
/// alone: 1 where it does not say, nothing where what it says cannot be.
std::optional<int> stated_ranks(const EngineStart& run, const char* key,
                                const std::optional<Printed>& printed);

/// A plan of what the start states: a plimsoll.plan/1 document. Where the GPU's memory is not known, for the
/// cache that is logged.
/// Errors: kUnsupported where the settings do not suffice; the message says what is missing.
Result<Json> plan_from_log(const EngineStart& run);

}  // namespace plimsoll::verify
