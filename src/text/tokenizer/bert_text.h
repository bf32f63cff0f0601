// SPDX-License-Identifier: Apache-2.0
// How BERT's tokenizers prepare text (cleaning, Chinese characters set apart, accents and case removed) and
// cut it into words; and the small normalizers Lowercase, StripAccents and Nmt of tokenizer.json. Character
// classes: reference_unicode.h. Plain functions; safe from any thread.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/text.h"
#include "text/tokenizer/rewriter.h"

namespace plimsoll::text {

struct BertTextOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  std::optional<bool> strip_accents = std::nullopt;  // as `lowercase` when not given
  bool lowercase = true;
};
/// Sources of all rewrites here must be valid UTF-8.
/// Source: agrees with tokenizers 0.23.3 on every character, see bert_text_test.cpp.
void bert_normalize(const BertTextOptions& options, Rewriter& out);
/// BertPreTokenizer: appends the pieces of `text`: white space is left out, each punctuation mark stands
/// alone.
void bert_split(std::string_view text, std::vector<Span>& pieces);

void lowercase(Rewriter& out);
void strip_accents(Rewriter& out);
/// SentencePiece's old clean-up: control characters dropped, odd white space and zero-width characters
/// become blanks.
void nmt(Rewriter& out);

}  // namespace plimsoll::text
