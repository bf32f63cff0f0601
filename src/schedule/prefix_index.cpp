// SPDX-License-Identifier: Apache-2.0
#include "schedule/prefix_index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace plimsoll::schedule {
namespace {

std::uint64_t hash_of(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens) {
  const std::uint64_t seed =
      previous != kNoPrefix ? previous : XXH3_64bits_withSeed(salt.data(), salt.size(), 1);
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

}  // namespace

PrefixIndex::PrefixIndex(Blocks total, int block_size)
    : block_size_(static_cast<std::size_t>(block_size)),
      entries_(static_cast<std::size_t>(total.value)),
      tokens_(entries_.size() * block_size_),
      buckets_(std::bit_ceil(entries_.size() + 1), kNone) {}

std::span<const TokenId> PrefixIndex::tokens_of(BlockId block) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(block) * block_size_, block_size_);
}

std::optional<PrefixIndex::Found> PrefixIndex::find(PrefixId previous, std::string_view salt,
                                                    std::span<const TokenId> tokens) const {
  const std::uint64_t hash = hash_of(previous, salt, tokens);
  for (BlockId block = buckets_[hash & (buckets_.size() - 1)]; block != kNone;
       block = entries_[static_cast<std::size_t>(block)].next) {
    const Entry& entry = entries_[static_cast<std::size_t>(block)];
    if (entry.hash == hash && entry.previous == previous && (previous != kNoPrefix || entry.salt == salt) &&
        std::ranges::equal(tokens, tokens_of(block)))
      return Found{block, entry.prefix};
  }
  return std::nullopt;
}

PrefixIndex::Added PrefixIndex::add(PrefixId previous, std::string_view salt, std::span<const TokenId> tokens,
                                    BlockId block) {
  PLIMSOLL_CHECK(tokens.size() == block_size_, "only full blocks are indexed");
  if (const auto found = find(previous, salt, tokens)) return {found->prefix, false};
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  PLIMSOLL_CHECK(entry.prefix == kNoPrefix, "a block is forgotten before it holds something else");
  const std::uint64_t hash = hash_of(previous, salt, tokens);
  entry.prefix = ++last_prefix_;
  entry.previous = previous;
  entry.hash = hash;
  if (previous == kNoPrefix) entry.salt = salt;
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(block) *
                                                  static_cast<std::ptrdiff_t>(block_size_));
  entry.next = std::exchange(bucket(hash), block);
  ++size_;
  return {entry.prefix, true};
}

void PrefixIndex::forget(BlockId block) {
  Entry& entry = entries_[static_cast<std::size_t>(block)];
  if (entry.prefix == kNoPrefix) return;
  BlockId* link = &bucket(entry.hash);
  while (*link != block) link = &entries_[static_cast<std::size_t>(*link)].next;
  *link = entry.next;
  entry = Entry{};
  --size_;
}

}  // namespace plimsoll::schedule
