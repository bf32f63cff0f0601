// SPDX-License-Identifier: Apache-2.0
// From a SentencePiece `.model` file to the parts of a tokenizer. Plain function; safe from any thread.
#pragma once

#include "base/result.h"
#include "text/tokenizer/pipeline_tokenizer.h"
#include "text/tokenizer/sentencepiece_file.h"

namespace plimsoll::text {

/// Control pieces become special tokens; text between them is encoded as one text each.
/// Errors: those of SentencePieceModel::build.
Result<TokenizerParts> sentencepiece_parts(const SentencePieceFile& file);

}  // namespace plimsoll::text
