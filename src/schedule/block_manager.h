// SPDX-License-Identifier: Apache-2.0
// Which blocks of the pool are free, held, or kept only because their content may be wanted again?
// Counts references and picks what to evict; knows neither tokens nor sequences. A block is in one of three
// states: held (references > 0), cached (no reference, content indexed) or free. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

class BlockManager {
 public:
  explicit BlockManager(Blocks total);

  struct Taken {
    BlockId block = 0;
    bool was_cached = false;  // its old content must leave the prefix index
  };
  /// A block with one reference: a free one, else the cached one that was released longest ago.
  std::optional<Taken> take();
  /// One more reference to a held or cached block.
  void hold(BlockId block);
  /// One reference less; at zero the block is cached if marked, else free.
  void release(BlockId block);
  /// The content of a held block is in the prefix index from now on.
  void mark_cached(BlockId block);

  int references(BlockId block) const { return entries_[static_cast<std::size_t>(block)].references; }
  Blocks total() const { return Blocks(static_cast<std::int64_t>(entries_.size())); }
  Blocks num_cached() const { return Blocks(static_cast<std::int64_t>(cached_.size())); }
  /// Blocks that take() can still give: free and cached ones.
  Blocks num_available() const { return Blocks(static_cast<std::int64_t>(free_.size() + cached_.size())); }
  Blocks num_used() const { return total() - num_available(); }

 private:
  struct Entry {
    int references = 0;
    bool is_indexed = false;
    std::list<BlockId>::iterator place;  // in cached_, while cached
  };
  std::vector<Entry> entries_;
  std::vector<BlockId> free_;
  std::list<BlockId> cached_;  // released longest ago first
};

}  // namespace plimsoll::schedule
