// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding without a merge list, as tiktoken files define it: two neighbours may join when their
// bytes together are a token, and the token of lowest id goes first, leftmost first. A piece that is a token
// is taken whole. Long pieces take n log n. Immutable; any thread may encode.
#pragma once

#include <array>

#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

class RankModel final : public PieceModel {
 public:
  /// `vocabulary` spells in bytes, its ids are in the order of ranks, special tokens are not in it; it must
  /// outlive the model. A byte that has no token vanishes.
  /// Source: agrees with tiktoken 0.14.0, see rank_model_test.cpp.
  explicit RankModel(const Vocabulary& vocabulary);

  void encode(std::string_view piece, const PieceSink& sink) const override;

 private:
  TokenId rank_of(std::string_view piece, std::size_t begin, std::size_t end) const;
  void merge_short(std::string_view piece, const PieceSink& sink) const;
  void merge_long(std::string_view piece, const PieceSink& sink) const;
  void add(std::string_view piece, std::size_t begin, std::size_t end, const PieceSink& sink) const;

  const Vocabulary& vocabulary_;
  std::array<TokenId, 256> byte_ids_;  // kNoToken where a byte has none
  std::size_t longest_ = 0;            // bytes of the longest token
};

}  // namespace plimsoll::text
