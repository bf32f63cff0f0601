// SPDX-License-Identifier: Apache-2.0
// Which blocks of the pool are free, held, or kept only because their content may be wanted again?
// Counts references and picks what to evict; knows neither tokens nor sequences. A block is in one of three
// states: held (references > 0), cached (no reference, content indexed) or free. All memory is taken at
// construction. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

class BlockManager {
 public:
  explicit BlockManager(Blocks total);

  struct Taken {
    BlockId block = 0;
    bool was_cached = false;  // its old content must leave the prefix tree
  };
  /// A block with one reference: a free one, else the cached one that was released longest ago.
  std::optional<Taken> take();
  /// One more reference to a held or cached block.
  void hold(BlockId block);
  /// One reference less; at zero the block is cached if marked, else free.
  void release(BlockId block);
  /// The content of a held block is in the prefix tree from now on.
  void mark_cached(BlockId block);
  /// The content of a held block left the prefix tree; its holder may write to it again.
  void unmark_cached(BlockId block);

  /// Cached blocks, by time of release: the last one, and the one released before another; kNoBlock at the
  /// end.
  BlockId newest_cached() const { return newest_; }
  BlockId older_cached(BlockId block) const { return entry(block).older; }

  int references(BlockId block) const { return entry(block).references; }
  bool is_indexed(BlockId block) const { return entry(block).is_indexed; }
  Blocks total() const { return Blocks(static_cast<std::int64_t>(entries_.size())); }
  Blocks num_cached() const { return Blocks(num_cached_); }
  /// Blocks that take() can still give: free and cached ones.
  Blocks num_available() const { return Blocks(static_cast<std::int64_t>(free_.size()) + num_cached_); }
  Blocks num_used() const { return total() - num_available(); }

 private:
  struct Entry {
    int references = 0;
    bool is_indexed = false;
    BlockId older = kNoBlock, newer = kNoBlock;  // neighbours by time of release, while cached
  };
  const Entry& entry(BlockId block) const { return entries_[static_cast<std::size_t>(block)]; }
  Entry& entry(BlockId block) { return entries_[static_cast<std::size_t>(block)]; }
  void link_newest(BlockId block);
  void unlink(BlockId block);

  std::vector<Entry> entries_;
  std::vector<BlockId> free_;
  BlockId oldest_ = kNoBlock, newest_ = kNoBlock;  // of the cached blocks
  std::int64_t num_cached_ = 0;
};

}  // namespace plimsoll::schedule
