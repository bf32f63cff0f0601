// SPDX-License-Identifier: Apache-2.0
// Unigram: the way to cut a piece into tokens whose scores add up highest (Viterbi over a trie). What no
// token covers is unknown, at a penalty, or becomes the tokens of its bytes. Time is linear in the piece,
// times the longest token. Immutable; any thread may encode.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

class UnigramModel final : public PieceModel {
 public:
  struct Options {
    std::optional<TokenId> unknown_id = std::nullopt;  // what has no token vanishes without one
    bool byte_fallback = false;                        // unknown text becomes its bytes' tokens "<0xE5>"
    bool fuse_unknown = true;                          // neighbours without token become one unknown
  };
  /// `scores`: one per id of `vocabulary`, which must outlive the model and spell plainly.
  /// Errors: kMalformed when their numbers differ, the unknown id has no token or a token is longer than
  /// kLongestToken.
  /// Source: agrees with Hugging Face tokenizers 0.23.3, see unigram_model_test.cpp.
  static Result<std::unique_ptr<UnigramModel>> build(const Vocabulary& vocabulary, std::vector<double> scores,
                                                     Options options);

  void encode(std::string_view piece, const PieceSink& sink) const override;

 private:
  struct Node {
    double score = 0;          // of the best way to cut the text up to here
    std::uint32_t length = 0;  // bytes of that way's last token; 0: no way leads here yet
    TokenId id = 0;
  };

  UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores, Options options);
  void find_best(std::string_view piece, std::vector<Node>& nodes) const;
  void add(std::string_view piece, std::size_t begin, std::size_t end, const PieceSink& sink) const;

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;  // [vocabulary size]
  double unknown_score_;
  Options options_;
  PrefixTrie trie_;
  std::array<TokenId, 256> byte_ids_;  // -1 when a byte has no token
};

}  // namespace plimsoll::text
