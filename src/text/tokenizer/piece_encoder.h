// SPDX-License-Identifier: Apache-2.0
// Encodes pieces one after another into one list of ids, remembering what pieces became. Pieces wait in a
// short queue, so that the table's memory is on its way before it is needed. The working memory of one call
// of encode at a time; the tokenizer keeps some.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizer/piece_model.h"
#include "text/tokenizer/piece_table.h"

namespace plimsoll::text {

class PieceEncoder {
 public:
  /// `model` must outlive the encoder.
  explicit PieceEncoder(const PieceModel& model) : model_(model) {}

  /// `readable`: so many bytes from the piece's start on may be read. The bytes must stay until flush().
  void add(std::string_view piece, std::size_t readable) {
    if (num_queued_ == queue_.size()) flush();
    Waiting& waiting = queue_[num_queued_++];
    waiting.piece = piece;
    waiting.readable = readable;
    if (piece.size() > ShortTable::kMaxBytes) return;
    ShortTable::make_key(piece, readable, waiting.key);
    short_.prefetch(waiting.key);
  }
  /// An id as it is, behind all pieces so far.
  void add(TokenId id);
  /// Encodes what waits.
  void flush();
  /// All ids since the last call.
  std::vector<TokenId> take();

 private:
  // Most of a language's words; a little more than the nearer caches hold.
  using ShortTable = PieceTable<24, 8, 17>;
  // Runs of scripts that write words without blanks, or letters of several bytes.
  using LongTable = PieceTable<88, 24, 14>;

  struct Waiting {
    std::string_view piece;
    std::size_t readable;
    ShortTable::Key key;
  };

  template <class Table>
  void append(Table& table, const typename Table::Key& key, std::string_view piece);
  void append_long(const Waiting& waiting);
  void encode_fresh(std::string_view piece);
  void make_room(std::size_t count);

  const PieceModel& model_;
  ShortTable short_;
  LongTable long_;
  static constexpr std::size_t kQueue = 32;
  static constexpr std::size_t kRoom = kQueue * 24;  // ids that a full queue of known pieces may write

  std::array<Waiting, kQueue> queue_;
  std::size_t num_queued_ = 0;
  std::vector<TokenId> ids_;  // [0, num_ids_) are given out, the rest is room
  std::size_t num_ids_ = 0;
  std::vector<TokenId> fresh_;  // of the piece at hand
};

}  // namespace plimsoll::text
