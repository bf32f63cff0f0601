// SPDX-License-Identifier: Apache-2.0
#include "schedule/block_manager.h"

namespace plimsoll::schedule {

BlockManager::BlockManager(Blocks total) {
  entries_.resize(static_cast<std::size_t>(total.value));
  free_.reserve(entries_.size());
  for (std::int64_t block = total.value; block-- > 0;) free_.push_back(static_cast<BlockId>(block));
}

void BlockManager::link_newest(BlockId block) {
  entry(block).older = newest_;
  entry(block).newer = kNoBlock;
  (newest_ == kNoBlock ? oldest_ : entry(newest_).newer) = block;
  newest_ = block;
  ++num_cached_;
}

void BlockManager::unlink(BlockId block) {
  const Entry gone = entry(block);
  (gone.older == kNoBlock ? oldest_ : entry(gone.older).newer) = gone.newer;
  (gone.newer == kNoBlock ? newest_ : entry(gone.newer).older) = gone.older;
  --num_cached_;
}

std::optional<BlockManager::Taken> BlockManager::take() {
  Taken taken;
  if (!free_.empty()) {
    taken.block = free_.back();
    free_.pop_back();
  } else if (oldest_ != kNoBlock) {
    taken = {oldest_, true};
    unlink(oldest_);
  } else {
    return std::nullopt;
  }
  entry(taken.block).references = 1;
  entry(taken.block).is_indexed = false;
  return taken;
}

void BlockManager::hold(BlockId block) {
  PLIMSOLL_CHECK(entry(block).references > 0 || entry(block).is_indexed,
                 "a free block holds nothing worth keeping");
  if (entry(block).references++ == 0) unlink(block);
}

void BlockManager::release(BlockId block) {
  PLIMSOLL_CHECK(entry(block).references > 0, "a block is released as often as it was taken and held");
  if (--entry(block).references > 0) return;
  if (entry(block).is_indexed)
    link_newest(block);
  else
    free_.push_back(block);
}

void BlockManager::mark_cached(BlockId block) {
  PLIMSOLL_CHECK(entry(block).references > 0, "only its holder knows what a block contains");
  entry(block).is_indexed = true;
}

void BlockManager::unmark_cached(BlockId block) {
  PLIMSOLL_CHECK(entry(block).references > 0, "a cached block leaves the tree by take() alone");
  entry(block).is_indexed = false;
}

}  // namespace plimsoll::schedule
