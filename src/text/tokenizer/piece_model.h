// SPDX-License-Identifier: Apache-2.0
// What turns a piece of text into ids: each kind of tokenizer (BPE, Unigram, WordPiece) is one
// implementation. Models are immutable after building; any thread may encode, each with its own sink.
#pragma once

#include <string_view>
#include <vector>

#include "text/text.h"

namespace plimsoll::text {

/// Where a model puts what it makes of a piece.
struct PieceSink {
  std::vector<TokenId>& ids;
  /// When not null: one per id, the bytes of the piece that it stands for.
  std::vector<Span>* spans = nullptr;

  void add(TokenId id, std::size_t begin, std::size_t end) const {
    ids.push_back(id);
    if (spans) spans->push_back({begin, end});
  }
};

class PieceModel {
 public:
  virtual ~PieceModel() = default;
  /// Appends the ids of `piece`: raw bytes for a byte-level vocabulary, else valid UTF-8. An empty piece has
  /// none.
  virtual void encode(std::string_view piece, const PieceSink& sink) const = 0;
  /// How many bytes of the piece can be encoded apart from the rest without changing an id: at least one
  /// character, all of it unless the model knows better.
  virtual std::size_t safe_cut(std::string_view piece) const { return piece.size(); }
};

}  // namespace plimsoll::text
