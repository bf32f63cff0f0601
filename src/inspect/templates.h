// SPDX-License-Identifier: Apache-2.0
// Where does a model keep its chat templates, and which one is taken? Finds the sources; rendering is the
// text room's work. Pure.
#pragma once

#include <string_view>

#include "base/finding.h"
#include "base/json.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// The document's object {sources[{file, names[], used}]}, and the TMPL_* findings.
Json check_templates(const Subject& subject, Findings& findings);

/// True when any chat template of the model holds `text`.
bool template_mentions(const Subject& subject, std::string_view text);

}  // namespace plimsoll::inspect
