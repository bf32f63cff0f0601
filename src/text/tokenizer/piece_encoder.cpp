// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/piece_encoder.h"

#include <algorithm>

namespace plimsoll::text {

TokenId* PieceEncoder::room(std::size_t count) {
  if (ids_.size() - num_ids_ < count) ids_.resize(std::max(ids_.size() * 2, num_ids_ + count + 1024));
  return ids_.data() + num_ids_;
}

void PieceEncoder::add(TokenId id) {
  flush();
  *room(1) = id;
  ++num_ids_;
}

template <class Table>
void PieceEncoder::append(Table& table, const typename Table::Key& key, std::string_view piece) {
  if (const auto* entry = table.find(key)) {
    // A fixed size spares a call; what is too much lies in the room.
    std::memcpy(room(std::size(entry->ids)), entry->ids, sizeof entry->ids);
    num_ids_ += entry->num_ids;
    return;
  }
  fresh_.clear();
  model_.encode(piece, {fresh_});
  table.remember(key, fresh_);
  std::copy(fresh_.begin(), fresh_.end(), room(fresh_.size()));
  num_ids_ += fresh_.size();
}

void PieceEncoder::flush() {
  for (std::size_t i = 0; i < num_queued_; ++i) {
    const Waiting& waiting = queue_[i];
    if (waiting.piece.size() <= ShortTable::kMaxBytes) {
      append(short_, waiting.key, waiting.piece);
    } else if (waiting.piece.size() <= LongTable::kMaxBytes) {
      append(long_, LongTable::key_of(waiting.piece, waiting.readable), waiting.piece);
    } else {
      fresh_.clear();
      model_.encode(waiting.piece, {fresh_});
      std::copy(fresh_.begin(), fresh_.end(), room(fresh_.size()));
      num_ids_ += fresh_.size();
    }
  }
  num_queued_ = 0;
}

std::vector<TokenId> PieceEncoder::take() {
  flush();
  std::vector<TokenId> ids(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(num_ids_));
  num_ids_ = 0;
  constexpr std::size_t kKept = std::size_t{1} << 20;  // a giant text must not stay for ever
  if (ids_.size() > kKept) ids_ = std::vector<TokenId>();
  return ids;
}

}  // namespace plimsoll::text
