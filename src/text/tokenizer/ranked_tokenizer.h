// SPDX-License-Identifier: Apache-2.0
// From a file of ranked tokens (tekken.json, *.tiktoken) to the parts of a tokenizer. Plain function; safe
// from any thread.
#pragma once

#include "base/result.h"
#include "text/tokenizer/pipeline_tokenizer.h"
#include "text/tokenizer/ranked_vocabulary.h"

namespace plimsoll::text {

/// Errors: those of the expression and the vocabulary.
Result<TokenizerParts> ranked_parts(const RankedVocabulary& ranked);

}  // namespace plimsoll::text
