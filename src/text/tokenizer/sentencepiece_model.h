// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes as SentencePiece itself does with a `.model` file, which Hugging Face's conversions of
// such files only approximate: BPE joins the pair whose piece has the highest score, leftmost first, in the
// whole text. Control pieces are never found in text: the tokenizer around it finds them, where special
// tokens are parsed. Owns what it needs of the file; immutable, any thread may use one.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/sentencepiece_file.h"
#include "text/tokenizer/sentencepiece_text.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

class SentencePieceModel final : public PieceModel {
 public:
  using PieceType = SentencePieceFile::PieceType;

  /// Errors: kMalformed for equal pieces, a piece longer than kLongestToken, a missing unknown piece or a
  /// damaged charsmap; kUnsupported for word and character models.
  /// Source: agrees with sentencepiece 0.2.3, see sentencepiece_model_test.cpp.
  static Result<std::unique_ptr<SentencePieceModel>> build(const SentencePieceFile& file);

  /// Appends the ids of a whole text (not of a piece of it: a blank is put in front). Spans are bytes of
  /// `text`; of a character's byte pieces the last one has them.
  void encode(std::string_view text, const PieceSink& sink) const override;
  /// Control pieces and ids outside the vocabulary give nothing, unknown ones the model's sign for it, byte
  /// pieces their bytes, repaired with U+FFFD.
  std::string decode(std::span<const TokenId> ids) const;

  TokenId size() const { return static_cast<TokenId>(types_.size()); }
  PieceType type_of(TokenId id) const { return types_[static_cast<std::size_t>(id)]; }
  /// The piece as the file spells it.
  std::string_view text_of(TokenId id) const { return texts_.bytes_of(id); }

 private:
  friend class SentencePieceBpe;
  struct Part {  // of the normalised text
    std::size_t begin, end;
    TokenId id;
  };

  explicit SentencePieceModel(SentencePieceText text) : text_(std::move(text)) {}
  Status take_pieces(const SentencePieceFile& file);
  void find_joints();
  TokenId id_of(std::string_view piece) const;
  bool is_unused(TokenId id) const { return type_of(id) == PieceType::kUnused; }
  void encode_unigram(std::string_view normalized, std::vector<Part>& parts) const;
  void encode_bpe(std::string_view normalized, std::vector<Part>& parts) const;

  SentencePieceText text_;
  Vocabulary texts_;                                   // all pieces
  Vocabulary findable_;                                // pieces that text can turn into
  std::unordered_map<std::string, TokenId> reserved_;  // the others: unknown, control, bytes
  std::vector<PieceType> types_;                       // [size]
  std::vector<float> scores_;                          // [size]
  PrefixTrie trie_;                                    // of findable pieces; for unigram models only
  float lowest_score_ = 0;                             // of normal pieces
  // Characters that some piece has before a blank: between any other character and a blank nothing joins.
  std::unordered_set<char32_t> joints_;
  bool has_unused_ = false;
  bool is_unigram_ = false;
  bool byte_fallback_ = false;
  bool strips_dummy_prefix_ = false;
  bool strips_all_blanks_ = false;
  TokenId unknown_id_ = 0;
  TokenId byte_ids_[256] = {};
  std::string unknown_surface_;
};

}  // namespace plimsoll::text
