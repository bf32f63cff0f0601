// SPDX-License-Identifier: Apache-2.0
// WordLevel: a piece is a token or unknown. Immutable; any thread may encode.
#pragma once

#include <optional>

#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

class WordLevelModel final : public PieceModel {
 public:
  /// `vocabulary` must outlive the model. Without `unknown_id` unknown pieces vanish.
  WordLevelModel(const Vocabulary& vocabulary, std::optional<TokenId> unknown_id)
      : vocabulary_(vocabulary), unknown_id_(unknown_id) {}

  void encode(std::string_view piece, const PieceSink& sink) const override {
    auto id = vocabulary_.find_bytes(piece);
    if (!id) id = unknown_id_;
    if (id) sink.add(*id, 0, piece.size());
  }

 private:
  const Vocabulary& vocabulary_;
  std::optional<TokenId> unknown_id_;
};

}  // namespace plimsoll::text
