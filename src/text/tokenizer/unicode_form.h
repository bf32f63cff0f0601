// SPDX-License-Identifier: Apache-2.0
// Unicode normal forms of whole texts. Most text already has the form it is asked for: only the few places
// that may change are looked at closely. Pure functions; any thread may call.
#pragma once

#include <string_view>

#include "text/tokenizer/rewriter.h"

namespace plimsoll::text {

enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

/// True when `utf8` surely has this form: nothing in it could change. False says nothing.
bool surely_has_form(std::string_view utf8, UnicodeForm form);

/// Writes the source (valid UTF-8) in this form.
void write_form(Rewriter& rewriter, UnicodeForm form);

}  // namespace plimsoll::text
