// SPDX-License-Identifier: Apache-2.0
#include "schedule/prefix_tree.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace plimsoll::schedule {

PrefixTree::PrefixTree(Blocks total, int block_size, int num_groups)
    : block_size_(static_cast<std::size_t>(block_size)),
      num_groups_(static_cast<std::size_t>(num_groups)),
      places_(static_cast<std::size_t>(total.value)) {
  grow(std::max<std::size_t>(places_.size(), 1));
}

void PrefixTree::grow(std::size_t num_nodes) {
  const std::size_t before = nodes_.size();
  nodes_.resize(num_nodes);
  tokens_.resize(num_nodes * block_size_);
  blocks_.resize(num_nodes * num_groups_, kNoBlock);
  unused_.reserve(num_nodes);
  for (std::size_t i = num_nodes; i-- > before;) unused_.push_back(static_cast<PrefixId>(i));
  buckets_.assign(std::bit_ceil(num_nodes + 1), kNoPrefix);
  for (std::size_t i = 0; i < before; ++i)  // all are in use, else nothing would have to grow
    nodes_[i].next = std::exchange(bucket(nodes_[i].hash), static_cast<PrefixId>(i));
}

std::uint64_t PrefixTree::hash_of(PrefixId parent, std::string_view key,
                                  std::span<const TokenId> tokens) const {
  std::uint64_t seed = parent == kNoPrefix ? 1 : node(parent).hash;
  if (!key.empty()) seed = XXH3_64bits_withSeed(key.data(), key.size(), seed);
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), seed);
}

std::span<const TokenId> PrefixTree::tokens(PrefixId prefix) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(prefix) * block_size_, block_size_);
}

PrefixId PrefixTree::find_hashed(std::uint64_t hash, PrefixId parent, std::string_view key,
                                 std::span<const TokenId> tokens) const {
  PrefixId at = buckets_[hash & (buckets_.size() - 1)];
  for (; at != kNoPrefix; at = node(at).next)
    if (node(at).hash == hash && node(at).parent == parent && node(at).key == key &&
        std::ranges::equal(tokens, this->tokens(at)))
      break;
  return at;
}

PrefixId PrefixTree::find(PrefixId parent, std::string_view key, std::span<const TokenId> tokens) const {
  return find_hashed(hash_of(parent, key, tokens), parent, key, tokens);
}

PrefixId PrefixTree::reach(PrefixId parent, std::string_view key, std::span<const TokenId> tokens) {
  PLIMSOLL_CHECK(tokens.size() == block_size_, "only full blocks are prefixes");
  const std::uint64_t hash = hash_of(parent, key, tokens);
  if (const PrefixId known = find_hashed(hash, parent, key, tokens); known != kNoPrefix) {
    hold(known);
    return known;
  }
  if (unused_.empty()) grow(2 * nodes_.size());
  const PrefixId made = unused_.back();
  unused_.pop_back();
  hold(parent);
  Node& fresh = node(made);
  fresh.parent = parent;
  fresh.hash = hash;
  fresh.key = key;
  fresh.uses = 1;
  fresh.next = std::exchange(bucket(hash), made);
  std::ranges::copy(
      tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(made) * static_cast<std::ptrdiff_t>(block_size_));
  return made;
}

void PrefixTree::hold(PrefixId prefix) {
  if (prefix != kNoPrefix) ++node(prefix).uses;
}

void PrefixTree::release(PrefixId prefix) {
  while (prefix != kNoPrefix && --node(prefix).uses == 0) {
    Node& gone = node(prefix);
    PrefixId* link = &bucket(gone.hash);
    while (*link != prefix) link = &node(*link).next;
    *link = gone.next;
    gone.key.clear();
    unused_.push_back(prefix);
    prefix = gone.parent;
  }
}

bool PrefixTree::offer(PrefixId prefix, int group, BlockId block) {
  BlockId& recorded = blocks_[place(prefix, group)];
  if (recorded != kNoBlock) return false;
  Place& where = places_[static_cast<std::size_t>(block)];
  PLIMSOLL_CHECK(where.prefix == kNoPrefix, "a block is forgotten before it holds something else");
  recorded = block;
  where = {prefix, group};
  hold(prefix);
  return true;
}

void PrefixTree::forget(BlockId block) {
  const Place where = std::exchange(places_[static_cast<std::size_t>(block)], Place{});
  if (where.prefix == kNoPrefix) return;
  blocks_[place(where.prefix, where.group)] = kNoBlock;
  release(where.prefix);
}

}  // namespace plimsoll::schedule
