// SPDX-License-Identifier: Apache-2.0
// WordPiece: a word is cut from the left into the longest tokens, which carry a prefix ("##") inside the
// word; a word that cannot be cut so is one unknown. Time is linear in the word, times the longest token.
// Immutable; any thread may encode.
#pragma once

#include <optional>
#include <string>

#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

class WordPieceModel final : public PieceModel {
 public:
  struct Options {
    std::optional<TokenId> unknown_id = std::nullopt;  // such words vanish without one
    std::string continuing_prefix = "##";
    std::size_t max_characters = 100;  // a longer word is unknown
  };
  /// `vocabulary` spells plainly; it need not outlive the model. Tokens longer than kLongestToken are not
  /// found.
  /// Source: agrees with Hugging Face tokenizers 0.23.3, see wordpiece_model_test.cpp.
  WordPieceModel(const Vocabulary& vocabulary, Options options);

  void encode(std::string_view piece, const PieceSink& sink) const override;

 private:
  Options options_;
  PrefixTrie trie_;
  std::optional<PrefixTrie::Node> inside_;  // where tokens that continue a word start
};

}  // namespace plimsoll::text
