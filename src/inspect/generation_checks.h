// SPDX-License-Identifier: Apache-2.0
// Which sampling defaults will an engine apply that nobody asked for? generation_config.json as vLLM
// (--generation-config auto, its default) and SGLang read it. Stop ids are token_checks' part. Pure.
#pragma once

#include "base/json.h"
#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.generation_defaults: the sampling keys that are set, as written; null when there is no
/// generation_config.json. Findings: GEN_DEFAULTS (info) naming them, GEN_VALUE (warning) for values that
/// samplers refuse, GEN_JSON (error) for a file that cannot be read.
/// Source: docs/formats/generation_config.md.
void check_generation(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
