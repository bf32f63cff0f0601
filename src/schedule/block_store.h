// SPDX-License-Identifier: Apache-2.0
// Which blocks of which group does a sequence stand in? One table per cache group over one pool; prefixes
// that are there already are shared, windows give back what slid out. One rule makes sharing safe: a block is
// written only by its sole holder and only while the prefix tree does not offer it; everyone else copies
// first. A state that the tree offers is thereby a snapshot. Knows no queue. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/block_manager.h"
#include "schedule/content_key.h"
#include "schedule/prefix_tree.h"
#include "schedule/schedule.h"

namespace plimsoll::schedule {

/// What a sequence holds; empty while it waits.
struct SequenceBlocks {
  struct Table {
    std::vector<BlockId> blocks;  // kNoBlock before first_kept
    std::int64_t first_kept = 0;
  };
  std::int64_t writable = 0;           // up to this position extend() has nothing to do
  std::int64_t num_indexed = 0;        // leading blocks that went through the prefix tree
  PrefixId prefix = kNoPrefix;         // node of these; held
  bool shares_tail = false;            // its last, partial blocks may have another holder
  std::int64_t snapshot_position = 0;  // of its last state that went to the tree
  std::vector<Table> tables;           // [groups]
};

/// The tokens of a sequence and what else tells their content apart.
struct Content {
  std::span<const TokenId> tokens;
  const ContentKey& key;
  bool reads_prefixes = true;
};

class BlockStore {
 public:
  /// Of the options it reads the pool, the groups, the prefix cache and, for windows, the largest chunk.
  explicit BlockStore(const Options& options);

  /// The most blocks that a sequence alone holds until it is `tokens` long.
  std::int64_t most_held(std::int64_t tokens) const;

  /// Takes what is there of the prefix and the blocks of all tokens in growing groups; windows get theirs in
  /// extend(), but their largest need has to be free. `final_tokens`: tables are made for that many.
  /// Returns how many leading tokens need no computing, at most all but one; nothing when there is no room.
  std::optional<std::int64_t> admit(SequenceBlocks& held, const Content& content, std::int64_t final_tokens);

  /// Makes [first, first + count) writable: new blocks, and copies of those that others read.
  /// False, and nothing is changed, when the pool has too few blocks.
  bool extend(SequenceBlocks& held, std::int64_t first, std::int64_t count, std::vector<Copy>& copies);

  /// A chunk of at most `wanted` tokens from `first` on that ends where a state is worth keeping: before the
  /// last block border of `length` tokens or at any border, if it reaches one. At least 1.
  std::int64_t chunk(std::int64_t first, std::int64_t wanted, std::int64_t length) const;

  /// Tokens up to `num_computed` are computed: full blocks go to the prefix tree, slid-out ones to the pool.
  /// `is_settled`: no later step is planned, so that the state is the one of this position.
  void computed(SequenceBlocks& held, const Content& content, std::int64_t num_computed, bool is_settled);

  /// Gives all back. Last block first: of two cached blocks of a chain the rear one is evicted first, for it
  /// is worth nothing without the one before it.
  void release(SequenceBlocks& held);

  /// A second holder of all that belongs to the first `num_tokens` tokens, which are all that is computed.
  SequenceBlocks share(SequenceBlocks& parent, std::int64_t num_tokens, std::int64_t final_tokens);

  /// See Scheduler::kept_prefixes() and restore().
  std::vector<KeptPrefix> kept() const;
  Status restore(std::vector<KeptPrefix>& prefixes);

  const BlockManager& pool() const { return pool_; }
  std::int64_t num_evicted() const { return num_evicted_; }
  std::int64_t num_copied() const { return num_copied_; }

 private:
  std::int64_t find(const Content& content);
  std::int64_t first_found(std::size_t group, std::int64_t num_found) const;
  void hold_found(SequenceBlocks& held, std::int64_t num_found);
  std::int64_t last_border(std::int64_t num_tokens) const;
  std::span<const TokenId> block_tokens(const Content& content, std::int64_t block) const;
  BlockId take();
  void copy_on_write(int group, BlockId& block, std::vector<Copy>& copies);
  BlockId* written_block(SequenceBlocks& held, std::size_t group, std::int64_t first) const;
  void index_full_blocks(SequenceBlocks& held, const Content& content, std::int64_t num_computed);
  void keep_states(SequenceBlocks& held);
  void slide_windows(SequenceBlocks& held, std::int64_t num_computed);
  void reserve(SequenceBlocks& held, std::int64_t final_tokens) const;

  std::vector<CacheGroup> groups_;
  std::vector<bool> is_per_token_, needs_all_;  // [groups]
  bool has_states_ = false, has_windows_ = false;
  int block_size_, largest_chunk_, snapshot_blocks_;
  bool enable_prefix_caching_;
  BlockManager pool_;
  PrefixTree tree_;
  std::vector<PrefixId> path_;      // of the last find(): nodes of blocks 0, 1, ...
  std::vector<std::int64_t> runs_;  // [groups] in find(): blocks in a row that are there
  std::string scratch_;
  std::int64_t num_evicted_ = 0, num_copied_ = 0;
};

}  // namespace plimsoll::schedule
