// SPDX-License-Identifier: Apache-2.0
// Reads the tokenizers library's tokenizer.json (format: docs/formats/tokenizer_json.md) into the parts of a
// tokenizer.
#pragma once

#include <string>

#include "base/json_view.h"
#include "base/result.h"
#include "text/tokenizer/pipeline_tokenizer.h"

namespace plimsoll::text {

/// Everything but bos, eos and stop ids, which other files name. `text` is the file's.
/// Errors: kMalformed with the JSON pointer; kUnsupported naming the kind of model, decoder or step.
Result<TokenizerParts> read_tokenizer_json(std::string text);
/// The same of a document that is read already.
Result<TokenizerParts> read_tokenizer_json(const JsonView& root);

}  // namespace plimsoll::text
