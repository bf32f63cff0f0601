// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/piece_encoder.h"

#include <algorithm>

namespace plimsoll::text {

void PieceEncoder::make_room(std::size_t count) {
  if (ids_.size() - num_ids_ < count) ids_.resize(std::max(ids_.size() * 2, num_ids_ + count + 1024));
}

void PieceEncoder::add(TokenId id) {
  flush();
  make_room(1);
  ids_[num_ids_++] = id;
}

void PieceEncoder::encode_fresh(std::string_view piece) {
  fresh_.clear();
  model_.encode(piece, {fresh_});
  make_room(fresh_.size() + kRoom);
  std::copy(fresh_.begin(), fresh_.end(), ids_.begin() + static_cast<std::ptrdiff_t>(num_ids_));
  num_ids_ += fresh_.size();
}

template <class Table>
void PieceEncoder::append(Table& table, const typename Table::Key& key, std::string_view piece) {
  if (const auto* entry = table.find(key)) {
    // A fixed size spares a call; what is too much lies in the room.
    std::memcpy(ids_.data() + num_ids_, entry->ids, sizeof entry->ids);
    num_ids_ += entry->num_ids;
    return;
  }
  encode_fresh(piece);
  table.remember(key, fresh_);
}

void PieceEncoder::append_long(const Waiting& waiting) {
  LongTable::Key key;
  LongTable::make_key(waiting.piece, waiting.readable, key);
  append(long_, key, waiting.piece);
}

void PieceEncoder::flush() {
  make_room(kRoom);
  for (std::size_t i = 0; i < num_queued_; ++i) {
    const Waiting& waiting = queue_[i];
    if (waiting.piece.size() <= ShortTable::kMaxBytes)
      append(short_, waiting.key, waiting.piece);
    else if (waiting.piece.size() <= LongTable::kMaxBytes)
      append_long(waiting);
    else
      encode_fresh(waiting.piece);
  }
  num_queued_ = 0;
}

std::vector<TokenId> PieceEncoder::take() {
  flush();
  std::vector<TokenId> ids(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(num_ids_));
  num_ids_ = 0;
  constexpr std::size_t kKept = std::size_t{1} << 20;  // a giant text must not stay for ever
  if (ids_.size() > kKept) ids_ = {};
  if (fresh_.capacity() > kKept) fresh_ = {};
  return ids;
}

}  // namespace plimsoll::text
