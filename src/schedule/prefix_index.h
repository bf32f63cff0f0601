// SPDX-License-Identifier: Apache-2.0
// Which block already holds the keys and values of these tokens behind that prefix? Blocks form chains: an
// entry names its predecessor, so equal tokens behind different prefixes never mix. Hashes only find
// candidates; tokens, predecessor and salt are compared before a block is given out. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

/// Names one indexed block for as long as the program runs; never used again after an eviction.
using PrefixId = std::uint64_t;
inline constexpr PrefixId kNoPrefix = 0;  // predecessor of a first block

class PrefixIndex {
 public:
  struct Found {
    BlockId block = 0;
    PrefixId prefix = kNoPrefix;
  };
  /// The block that holds exactly `tokens` behind `previous`. `salt` separates users whose prompts must not
  /// be told apart by timing; it counts in the first block of a chain and so in all behind it.
  std::optional<Found> find(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens) const;

  /// Records a full, computed block. Returns its name in the chain and whether the entry is this block's own:
  /// when another block holds the same content already, that one's name is returned and nothing is recorded.
  struct Added {
    PrefixId prefix = kNoPrefix;
    bool is_new = false;
  };
  Added add(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens, BlockId block);

  /// Forgets an evicted block.
  void forget(BlockId block);

  std::size_t size() const { return by_hash_.size(); }

 private:
  struct Entry {
    PrefixId prefix = kNoPrefix;
    PrefixId previous = kNoPrefix;
    BlockId block = 0;
    std::string salt;  // of first blocks only
    std::vector<TokenId> tokens;
  };
  static std::uint64_t hash(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens);
  const Entry* entry_of(std::uint64_t hash, PrefixId previous, std::string_view salt,
                        std::span<const TokenId> tokens) const;

  std::unordered_map<std::uint64_t, Entry> by_hash_;
  std::unordered_map<BlockId, std::uint64_t> hash_of_block_;
  PrefixId last_prefix_ = kNoPrefix;
};

}  // namespace plimsoll::schedule
