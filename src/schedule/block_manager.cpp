// SPDX-License-Identifier: Apache-2.0
#include "schedule/block_manager.h"

namespace plimsoll::schedule {

BlockManager::BlockManager(Blocks total) {
  entries_.resize(static_cast<std::size_t>(total.value));
  free_.reserve(entries_.size());
  for (std::int64_t block = total.value; block-- > 0;) free_.push_back(static_cast<BlockId>(block));
}

std::optional<BlockManager::Taken> BlockManager::take() {
  Taken taken;
  if (!free_.empty()) {
    taken.block = free_.back();
    free_.pop_back();
  } else if (!cached_.empty()) {
    taken = {cached_.front(), true};
    cached_.pop_front();
  } else {
    return std::nullopt;
  }
  Entry& entry = entries_[static_cast<std::size_t>(taken.block)];
  entry.references = 1;
  entry.is_indexed = false;
  return taken;
}

void BlockManager::hold(BlockId block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  PLIMSOLL_CHECK(entry.references > 0 || entry.is_indexed, "a free block holds nothing worth keeping");
  if (entry.references++ == 0) cached_.erase(entry.place);
}

void BlockManager::release(BlockId block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  PLIMSOLL_CHECK(entry.references > 0, "a block is released as often as it was taken and held");
  if (--entry.references > 0) return;
  if (entry.is_indexed)
    entry.place = cached_.insert(cached_.end(), block);
  else
    free_.push_back(block);
}

void BlockManager::mark_cached(BlockId block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  PLIMSOLL_CHECK(entry.references > 0, "only its holder knows what a block contains");
  entry.is_indexed = true;
}

}  // namespace plimsoll::schedule
