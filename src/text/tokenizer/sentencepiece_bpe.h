// SPDX-License-Identifier: Apache-2.0
// The joining part of SentencePiece's BPE for one run of text; SentencePieceModel prepares runs and takes the
// result. One object per encoding, on one thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/sentencepiece_model.h"

namespace plimsoll::text {

class SentencePieceBpe {
 public:
  SentencePieceBpe(const SentencePieceModel& model, std::string_view normalized)
      : model_(model), normalized_(normalized) {}

  bool is_empty() const { return symbols_.empty(); }
  /// The next character of the run, or a user-defined symbol, which joins nothing.
  void add(std::size_t begin, std::size_t bytes, bool is_frozen);
  /// Joins what was added and appends the pieces; the next run may start.
  void flush(std::vector<SentencePieceModel::Part>& parts);

 private:
  struct Symbol {
    std::size_t begin;
    std::size_t bytes;  // 0: joined into the one before
    TokenId id;
    bool is_frozen;
    std::int64_t previous, next;  // -1: none
  };
  struct Candidate {
    float score;
    std::int64_t left, right;
    std::size_t bytes;  // of both; tells whether one has changed since
    TokenId id;
    bool operator<(const Candidate& other) const {  // the queue gives its greatest first
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  void offer(std::int64_t left, std::int64_t right);
  void join(const Candidate& candidate);
  void put(std::size_t begin, std::size_t end, TokenId id, std::vector<SentencePieceModel::Part>& parts);
  Symbol& symbol(std::int64_t i) { return symbols_[static_cast<std::size_t>(i)]; }

  const SentencePieceModel& model_;
  std::string_view normalized_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> queue_;  // a heap
  // How an unused piece was last put together: bytes of its left part. Such pieces are taken apart again.
  std::unordered_map<TokenId, std::size_t> left_parts_;
};

}  // namespace plimsoll::text
