// SPDX-License-Identifier: Apache-2.0
// Reads a GGUF file's tokenizer.ggml.* keys into the parts of a tokenizer. GGUF names its splitting rules
// (tokenizer.ggml.pre) instead of spelling them; the table of names is here.
#pragma once

#include "base/json.h"
#include "base/result.h"
#include "text/tokenizer/pipeline_tokenizer.h"

namespace plimsoll::text {

/// `metadata` is the object of all GGUF keys; it may be dropped afterwards.
/// Errors: kMalformed naming the key; kUnsupported naming the tokenizer model or the pre-tokenizer.
Result<TokenizerParts> read_gguf_tokenizer(const Json& metadata);

}  // namespace plimsoll::text
