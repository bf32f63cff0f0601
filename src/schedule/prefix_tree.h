// SPDX-License-Identifier: Apache-2.0
// Which blocks already hold what belongs to this prefix? A tree of prefixes: each node is one more block of
// tokens behind its parent, and names at most one block of each cache group. Hashes only find candidates;
// tokens, parent and key are compared all along the way, so equal hashes never mix contents. A node lives as
// long as a child, a recorded block or a sequence that stands at it. Blocks of a node may be evicted one by
// one and recorded again. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace plimsoll::schedule {

/// A node; the number is used again once the node is gone, so whoever keeps one holds it.
using PrefixId = std::int32_t;
inline constexpr PrefixId kNoPrefix = -1;  // the empty prefix, parent of first blocks

class PrefixTree {
 public:
  /// For the blocks [0, total) of a pool, each of `block_size` tokens. Nodes for `total` prefixes are there
  /// from the start; more are made when chains outlive their blocks (windows, states).
  PrefixTree(Blocks total, int block_size, int num_groups);

  /// The node of `tokens` behind `parent`, or kNoPrefix. `key`: what besides its tokens tells the content of
  /// the block apart (salt, adaptor, images); it counts for all behind it too.
  /// Shapes: tokens [block_size].
  PrefixId find(PrefixId parent, std::string_view key, std::span<const TokenId> tokens) const;
  /// The same node, made when there is none. The caller holds it and goes on holding `parent`.
  PrefixId reach(PrefixId parent, std::string_view key, std::span<const TokenId> tokens);
  /// A sequence stands at a node, or leaves it; kNoPrefix is nobody's.
  void hold(PrefixId prefix);
  void release(PrefixId prefix);

  /// The block of a group with the content of this node, or kNoBlock.
  BlockId block(PrefixId prefix, int group) const { return blocks_[place(prefix, group)]; }
  /// Records a block with the content of a held node. False, and nothing is recorded, when another block has
  /// this content already.
  bool offer(PrefixId prefix, int group, BlockId block);
  /// Forgets what a block contained, when it is evicted or written again; a block without record is ignored.
  void forget(BlockId block);

  /// The node that a block is recorded at, or kNoPrefix.
  PrefixId prefix_of(BlockId block) const { return places_[static_cast<std::size_t>(block)].prefix; }
  PrefixId parent(PrefixId prefix) const { return node(prefix).parent; }
  const std::string& key(PrefixId prefix) const { return node(prefix).key; }
  std::span<const TokenId> tokens(PrefixId prefix) const;

  std::size_t num_nodes() const { return nodes_.size() - unused_.size(); }

 private:
  struct Node {
    PrefixId parent = kNoPrefix;
    PrefixId next = kNoPrefix;  // in the same bucket
    std::int32_t uses = 0;      // children, recorded blocks, sequences
    std::uint64_t hash = 0;
    std::string key;
  };
  struct Place {
    PrefixId prefix = kNoPrefix;
    int group = 0;
  };
  Node& node(PrefixId prefix) { return nodes_[static_cast<std::size_t>(prefix)]; }
  const Node& node(PrefixId prefix) const { return nodes_[static_cast<std::size_t>(prefix)]; }
  std::size_t place(PrefixId prefix, int group) const {
    return static_cast<std::size_t>(prefix) * num_groups_ + static_cast<std::size_t>(group);
  }
  std::uint64_t hash_of(PrefixId parent, std::string_view key, std::span<const TokenId> tokens) const;
  PrefixId& bucket(std::uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  PrefixId find_hashed(std::uint64_t hash, PrefixId parent, std::string_view key,
                       std::span<const TokenId> tokens) const;
  void grow(std::size_t num_nodes);

  std::size_t block_size_, num_groups_;
  std::vector<Node> nodes_;
  std::vector<PrefixId> unused_;   // nodes without content
  std::vector<TokenId> tokens_;    // [nodes, block_size]
  std::vector<BlockId> blocks_;    // [nodes, groups]
  std::vector<PrefixId> buckets_;  // first node of each chain of equal low hash bits; a power of two of them
  std::vector<Place> places_;      // [blocks of the pool]: where a block is recorded
};

}  // namespace plimsoll::schedule
