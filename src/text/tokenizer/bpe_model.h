// SPDX-License-Identifier: Apache-2.0
// Byte-level byte-pair encoding of one piece: start from single bytes, join the pair of lowest rank, leftmost
// first, until none is left. Long pieces use a heap, so that 100,000 equal characters take n log n.
// Any thread may encode; the only shared mutable state are relaxed flags that remember which vocabulary
// entries encode to themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/vocabulary.h"

namespace plimsoll::text {

/// What turns a piece into ids; each kind of tokenizer model is one implementation.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  /// Appends the ids of `piece` (raw bytes).
  virtual void encode(std::string_view piece, std::vector<TokenId>& ids) const = 0;
};

class BpeModel final : public PieceModel {
 public:
  struct Merge {
    std::string_view left;  // in byte characters
    std::string_view right;
  };
  struct Options {
    bool ignore_merges = false;         // a piece that is a token is taken whole
    std::optional<TokenId> unknown_id;  // for bytes without token; they vanish without one
    bool fuse_unknown = false;
  };
  /// `vocabulary` must outlive the model.
  /// Errors: kMalformed naming the merge (its number from 0 and text) whose parts or result are no tokens.
  static Result<std::unique_ptr<BpeModel>> build(const Vocabulary& vocabulary,
                                                 const std::vector<Merge>& merges, const Options& options);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;

 private:
  struct Pair {
    std::uint64_t key = kEmptyKey;  // left id << 32 | right id
    std::uint32_t rank = 0;
    TokenId merged = 0;
  };
  static constexpr std::uint64_t kEmptyKey = ~std::uint64_t{0};
  struct Symbol {
    TokenId id;
    std::int32_t previous;
    std::int32_t next;
  };
  enum Whole : std::uint8_t { kUnknown, kYes, kNo };

  explicit BpeModel(const Vocabulary& vocabulary, const Options& options);
  void insert(std::uint64_t key, std::uint32_t rank, TokenId merged);
  const Pair* find(TokenId left, TokenId right) const;
  void start_symbols(std::string_view piece, std::vector<TokenId>& symbols) const;
  void merge_short(std::vector<TokenId>& symbols) const;
  void merge_long(std::vector<TokenId>& symbols) const;

  const Vocabulary& vocabulary_;
  Options options_;
  std::vector<Pair> pairs_;                               // open addressing, a power of two long
  std::vector<TokenId> byte_ids_;                         // [256], -1 when a byte has no token
  mutable std::vector<std::atomic<std::uint8_t>> whole_;  // by id: does the token encode to itself?
};

}  // namespace plimsoll::text
