// SPDX-License-Identifier: Apache-2.0
// What a GGUF file's tokenizer.ggml.pre means: GGUF names its splitting rules instead of spelling them. The
// table of names is here. Plain functions; safe from any thread.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace plimsoll::text {

struct GgufRules {
  PreTokenizer pre_tokenizer;
  bool nfc = false;            // text is brought to NFC first
  bool ignore_merges = false;  // a piece that is a token is taken whole
  bool adds_bos = false;       // when the file does not say
};

/// Errors: kUnsupported naming the rules we lack.
/// Source: the names of llama.cpp, with the expressions and normal forms of the tokenizer.json files that its
/// converter takes them from.
Result<GgufRules> gguf_rules(std::string_view name);

}  // namespace plimsoll::text
