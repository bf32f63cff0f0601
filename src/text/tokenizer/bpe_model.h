// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding of one piece: start from single bytes (byte-level vocabularies) or characters (the
// others), join the pair of lowest rank, leftmost first, until none is left. Long pieces use a heap, so that
// 100,000 equal characters take n log n. Immutable; any thread may encode.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

class BpeModel final : public PieceModel {
 public:
  struct Merge {
    std::string_view left;  // as the file spells them
    std::string_view right;
  };
  struct Options {
    bool ignore_merges = false;         // a piece that is a token is taken whole
    bool byte_fallback = false;         // a character without token becomes its bytes' tokens "<0xE5>"
    std::optional<TokenId> unknown_id;  // for what has no token; it vanishes without one
    bool fuse_unknown = false;          // neighbours without token become one unknown
    std::string continuing_prefix;      // before every character of a piece but the first ("##")
    std::string end_suffix;             // behind the last ("</w>")
  };
  /// `vocabulary` must outlive the model.
  /// Errors: kMalformed naming the merge (its number from 0 and text) whose parts or result are no tokens.
  static Result<std::unique_ptr<BpeModel>> build(const Vocabulary& vocabulary,
                                                 const std::vector<Merge>& merges, Options options);

  void encode(std::string_view piece, const PieceSink& sink) const override;
  /// At the first place that no merge can cross.
  std::size_t safe_cut(std::string_view piece) const override;

 private:
  struct Pair {
    std::uint64_t key = kEmptyKey;  // left id << 32 | right id
    std::uint32_t rank = 0;
    TokenId merged = 0;
  };
  static constexpr std::uint64_t kEmptyKey = ~std::uint64_t{0};
  struct Symbol {
    TokenId id;
    std::uint32_t bytes;  // of the piece
  };

  BpeModel(const Vocabulary& vocabulary, Options options);
  Status insert_all(std::span<const Merge> merges, std::size_t first_rank);
  void find_cuts(const std::vector<Merge>& merges);
  void insert(std::uint64_t key, std::uint32_t rank, TokenId merged);
  const Pair* find(TokenId left, TokenId right) const;
  void start_bytes(std::string_view piece, std::vector<Symbol>& symbols) const;
  void start_characters(std::string_view piece, std::vector<Symbol>& symbols) const;
  bool add_bytes(std::string_view key, std::uint32_t bytes, std::vector<Symbol>& symbols) const;
  void merge_short(std::vector<Symbol>& symbols) const;
  void merge_long(std::vector<Symbol>& symbols) const;

  const Vocabulary& vocabulary_;
  Options options_;
  bool starts_with_bytes_;
  std::vector<char> joins_;  // [last byte of a text][first byte of the next]: may a merge join them? Or empty
  std::vector<Pair> pairs_;  // open addressing, a power of two long
  std::array<TokenId, 256> byte_ids_;   // -1 when a byte has no token
  std::array<TokenId, 128> ascii_ids_;  // of plainly spelled characters; -1 likewise
};

}  // namespace plimsoll::text
