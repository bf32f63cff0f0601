// SPDX-License-Identifier: Apache-2.0
// The one Tokenizer: cut out added tokens, normalise, split, encode pieces, add BOS/EOS; back through the
// decoder. What differs between kinds of tokenizer lies in the parts, filled by the readers of the formats.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "text/text.h"
#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/bpe_model.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/sentencepiece_model.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

struct TokenizerParts {
  std::unique_ptr<const Vocabulary> vocabulary;
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::unique_ptr<const PieceModel> model;
  PostProcessor post_processor;
  Decoder decoder;
  const SentencePieceModel* sentencepiece = nullptr;  // decodes by its own rules when `model` is one
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::vector<TokenId> stop_ids;
};

std::shared_ptr<const Tokenizer> make_tokenizer(TokenizerParts parts);

}  // namespace plimsoll::text
