// SPDX-License-Identifier: Apache-2.0
// What a file of ranked tokens (tekken.json, *.tiktoken) holds, whichever of the formats it is: tokens in
// bytes, the expression that cuts text into pieces, special tokens. Plain data that owns its bytes; moving it
// keeps the views valid, copying is not allowed. Any number of threads may read one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

struct SpecialToken {
  std::string text;
  TokenId id = 0;
};

struct RankedVocabulary {
  std::vector<char> bytes;                 // what the entries' texts view
  std::vector<Vocabulary::Entry> entries;  // ordinary tokens only; for Spelling::kBytes and RankModel
  std::string pattern;                     // each match is a piece
  std::vector<SpecialToken> specials;
  std::optional<TokenId> bos, eos;
  bool is_normalized_nfc = false;  // text is brought to NFC first

  RankedVocabulary() = default;
  RankedVocabulary(RankedVocabulary&&) = default;
  RankedVocabulary& operator=(RankedVocabulary&&) = default;
};

}  // namespace plimsoll::text
