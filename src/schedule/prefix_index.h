// SPDX-License-Identifier: Apache-2.0
// Which block already holds the keys and values of these tokens behind that prefix? Blocks form chains: an
// entry names its predecessor, so equal tokens behind different prefixes never mix. Hashes only find
// candidates; tokens, predecessor and salt are compared before a block is given out. All memory is taken at
// construction (salts beyond a few letters apart). Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

/// Names one indexed content for as long as the program runs; never used again after an eviction.
using PrefixId = std::uint64_t;
inline constexpr PrefixId kNoPrefix = 0;  // predecessor of a first block

class PrefixIndex {
 public:
  /// For the blocks [0, total) of a pool, each of `block_size` tokens.
  PrefixIndex(Blocks total, int block_size);

  struct Found {
    BlockId block = 0;
    PrefixId prefix = kNoPrefix;
  };
  /// The block that holds exactly `tokens` behind `previous`. `salt` separates users whose prompts must not
  /// be told apart by timing; it counts in the first block of a chain and so in all behind it.
  /// Shapes: tokens [block_size].
  std::optional<Found> find(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens) const;

  /// Records a full, computed block that is not recorded yet. Returns its name in the chain and whether the
  /// entry is this block's own: when another block holds the same content already, that one's name is
  /// returned and nothing is recorded.
  struct Added {
    PrefixId prefix = kNoPrefix;
    bool is_new = false;
  };
  Added add(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens, BlockId block);

  /// Forgets an evicted block; does nothing for one that is not recorded.
  void forget(BlockId block);

  std::size_t size() const { return size_; }

 private:
  static constexpr BlockId kNone = -1;
  struct Entry {                  // of the block with this number
    PrefixId prefix = kNoPrefix;  // kNoPrefix: not recorded
    PrefixId previous = kNoPrefix;
    std::uint64_t hash = 0;
    BlockId next = kNone;  // in the same bucket
    std::string salt;      // of first blocks only
  };
  std::span<const TokenId> tokens_of(BlockId block) const;
  BlockId& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }

  std::size_t block_size_;
  std::vector<Entry> entries_;    // [blocks]
  std::vector<TokenId> tokens_;   // [blocks, block_size]
  std::vector<BlockId> buckets_;  // first block of each chain of equal low hash bits; a power of two of them
  std::size_t size_ = 0;
  PrefixId last_prefix_ = kNoPrefix;
};

}  // namespace plimsoll::schedule
