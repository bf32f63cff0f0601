// SPDX-License-Identifier: Apache-2.0
// Reads tekken.json, the file of Mistral's tokenizers. Special tokens have the first ids; those the file does
// not name are called "<SPECIAL_20>". Plain function; safe from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/ranked_vocabulary.h"

namespace plimsoll::text {

/// Errors: kMalformed with the JSON pointer of what is missing or does not fit.
/// Source: mistral-common 1.13.1. Special strings in text are never special to it.
Result<RankedVocabulary> read_tekken(const Json& file);

}  // namespace plimsoll::text
