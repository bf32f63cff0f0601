// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/sentencepiece_bpe.h"

#include <algorithm>

namespace plimsoll::text {

void SentencePieceBpe::add(std::size_t begin, std::size_t bytes, bool is_frozen) {
  const auto index = static_cast<std::int64_t>(symbols_.size());
  symbols_.push_back(
      {begin, bytes, model_.id_of(normalized_.substr(begin, bytes)), is_frozen, index - 1, -1});
  if (index > 0) symbol(index - 1).next = index;
}

void SentencePieceBpe::offer(std::int64_t left, std::int64_t right) {
  if (left < 0 || right < 0 || symbol(left).is_frozen || symbol(right).is_frozen) return;
  const std::size_t bytes = symbol(left).bytes + symbol(right).bytes;
  const auto id = model_.findable_.find_bytes(normalized_.substr(symbol(left).begin, bytes));
  if (!id) return;
  queue_.push_back({model_.scores_[static_cast<std::size_t>(*id)], left, right, bytes, *id});
  std::push_heap(queue_.begin(), queue_.end());
  if (model_.is_unused(*id)) left_parts_[*id] = symbol(left).bytes;
}

void SentencePieceBpe::join(const Candidate& candidate) {
  Symbol& left = symbol(candidate.left);
  Symbol& right = symbol(candidate.right);
  if (left.bytes == 0 || right.bytes == 0 || left.bytes + right.bytes != candidate.bytes) return;
  left.bytes = candidate.bytes;
  left.id = candidate.id;
  left.next = right.next;
  if (right.next >= 0) symbol(right.next).previous = candidate.left;
  right.bytes = 0;
  offer(left.previous, candidate.left);
  offer(candidate.left, left.next);
}

void SentencePieceBpe::flush(std::vector<SentencePieceModel::Part>& parts) {
  const auto size = static_cast<std::int64_t>(symbols_.size());
  for (std::int64_t i = 1; i < size; ++i) offer(i - 1, i);
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Candidate best = queue_.back();
    queue_.pop_back();
    join(best);
  }
  for (const Symbol& each : symbols_)
    if (each.bytes > 0) put(each.begin, each.begin + each.bytes, each.id, parts);
  symbols_.clear();
}

void SentencePieceBpe::put(std::size_t begin, std::size_t end, TokenId id,
                           std::vector<SentencePieceModel::Part>& parts) {
  std::vector<SentencePieceModel::Part> waiting{{begin, end, id}};  // the leftmost last
  while (!waiting.empty()) {
    const SentencePieceModel::Part part = waiting.back();
    waiting.pop_back();
    if (!model_.is_unused(part.id)) {
      parts.push_back(part);
      continue;
    }
    const auto split = left_parts_.find(part.id);
    if (split == left_parts_.end()) {  // a single character
      parts.push_back({part.begin, part.end, model_.unknown_id_});
      continue;
    }
    const std::size_t middle = part.begin + split->second;
    waiting.push_back({middle, part.end, model_.id_of(normalized_.substr(middle, part.end - middle))});
    waiting.push_back(
        {part.begin, middle, model_.id_of(normalized_.substr(part.begin, middle - part.begin))});
  }
}

}  // namespace plimsoll::text
