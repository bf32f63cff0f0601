// SPDX-License-Identifier: Apache-2.0
// Reads a GGUF file's tokenizer.ggml.* keys into the parts of a tokenizer: byte-level BPE, Llama's BPE with
// scores, Gemma 4's with merges, T5's Unigram, BERT's WordPiece. Plain function; safe from any thread.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/pipeline_tokenizer.h"

namespace plimsoll::text {

/// `metadata` is the object of all GGUF keys; it may be dropped afterwards.
/// Errors: kMalformed naming the key; kUnsupported naming the tokenizer model or the pre-tokenizer.
Result<TokenizerParts> read_gguf_tokenizer(const Json& metadata);

}  // namespace plimsoll::text
