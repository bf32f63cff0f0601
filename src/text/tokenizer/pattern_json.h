// SPDX-License-Identifier: Apache-2.0
// Patterns as tokenizer.json writes them: {"String": ...} or {"Regex": ...}. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/regex.h"

namespace plimsoll::text {

/// `where` is the place for errors. Errors: kMalformed for what is no pattern; those of Regex::compile.
Result<Regex> read_pattern(const Json& json, std::string_view where);

}  // namespace plimsoll::text
