// SPDX-License-Identifier: Apache-2.0
// Reads tiktoken files: one token per line, its bytes in base64 and its rank. Such a file names neither its
// special tokens nor how text is cut: a table of the published ones does. Plain functions; safe from any
// thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer/ranked_vocabulary.h"

namespace plimsoll::text {

/// `name`: of the file, for errors.
/// Errors: kMalformed with the line; kUnsupported, with advice, when the number of tokens is none of the
/// table's.
Result<RankedVocabulary> read_tiktoken(std::string_view file, std::string_view name);

/// True for text that starts as such a file does: other files share its extensions (.model).
bool looks_like_tiktoken(std::string_view file);

}  // namespace plimsoll::text
