// SPDX-License-Identifier: Apache-2.0
// Renders a template at the time that the reference rows were computed at (data/PROVENANCE/text.md). Shared
// by the tests of templates; results own their text.
#pragma once

#include <string>

#include "base/json.h"
#include "text/text.h"

namespace plimsoll::text {

using Rendered = tl::expected<std::string, TemplateError>;

/// Errors: the template's, of parsing or of rendering.
Rendered render(const std::string& source, const Json& context);

}  // namespace plimsoll::text
