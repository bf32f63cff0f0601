// SPDX-License-Identifier: Apache-2.0
#include "schedule/prefix_index.h"

#include <xxhash.h>

#include <algorithm>

namespace plimsoll::schedule {

std::uint64_t PrefixIndex::hash(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens) {
  const std::uint64_t seed =
      previous != kNoPrefix ? previous : XXH3_64bits_withSeed(salt.data(), salt.size(), 1);
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

const PrefixIndex::Entry* PrefixIndex::entry_of(std::uint64_t hash, PrefixId previous, std::string_view salt,
                                                std::span<const TokenId> tokens) const {
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end()) return nullptr;
  const Entry& entry = found->second;
  const bool is_same = entry.previous == previous && (previous != kNoPrefix || entry.salt == salt) &&
                       std::equal(tokens.begin(), tokens.end(), entry.tokens.begin(), entry.tokens.end());
  return is_same ? &entry : nullptr;
}

std::optional<PrefixIndex::Found> PrefixIndex::find(PrefixId previous, std::string_view salt,
                                                    std::span<const TokenId> tokens) const {
  const Entry* entry = entry_of(hash(previous, salt, tokens), previous, salt, tokens);
  if (!entry) return std::nullopt;
  return Found{entry->block, entry->prefix};
}

PrefixIndex::Added PrefixIndex::add(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens,
                                    BlockId block) {
  const std::uint64_t key = hash(previous, salt, tokens);
  if (const Entry* entry = entry_of(key, previous, salt, tokens)) return {entry->prefix, false};
  // Two contents with one hash: the second is not recorded, so nobody finds the blocks behind it and they are
  // evicted in their turn. Correct, and too rare to do better.
  const PrefixId prefix = ++last_prefix_;
  Entry entry{prefix, previous, block, previous == kNoPrefix ? std::string(salt) : std::string(),
              std::vector<TokenId>(tokens.begin(), tokens.end())};
  const bool is_new = by_hash_.try_emplace(key, std::move(entry)).second;
  if (is_new) hash_of_block_[block] = key;
  return {prefix, is_new};
}

void PrefixIndex::forget(BlockId block) {
  const auto found = hash_of_block_.find(block);
  if (found == hash_of_block_.end()) return;
  by_hash_.erase(found->second);
  hash_of_block_.erase(found);
}

}  // namespace plimsoll::schedule
