// SPDX-License-Identifier: Apache-2.0
// Does the model bring code of its own? auto_map in config.json, tokenizer_config.json and processor configs,
// and Python files beside them. Nothing is ever run. Pure.
#pragma once

#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Findings: REMOTE_CODE for each auto_map, naming what it loads and whether the file is there: a warning, or
/// info where it brings no more than a class that an engine has itself;
/// CODE_FILES (info) for Python files that no auto_map names.
void check_code(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
