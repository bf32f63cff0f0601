// SPDX-License-Identifier: Apache-2.0
// Where does a model keep its chat templates, which one is taken, and what does it do with system messages,
// tools and the end of an answer? Finds the sources and tries them; rendering is the text room's work. Pure.
#pragma once

#include <optional>
#include <string>

#include "base/finding.h"
#include "base/json.h"
#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// The document's object {sources[{file, names[], used}], system, tools}, and the TMPL_* findings. `system`
/// and `tools` say what the template does with them: taken, ignored, refused, or null where it cannot be
/// tried. TMPL_MISSING is told of models that write text. Wants report.architecture and report.spec.
Json check_templates(const Subject& subject, const Report& report, Findings& findings);

/// What the used template writes behind the answer of an assistant, the last message; nothing when it cannot
/// be rendered.
std::optional<std::string> after_answer(const Subject& subject);

}  // namespace plimsoll::inspect
