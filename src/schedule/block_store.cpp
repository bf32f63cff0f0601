// SPDX-License-Identifier: Apache-2.0
#include "schedule/block_store.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "schedule/cache_group.h"

namespace plimsoll::schedule {

BlockStore::BlockStore(const Options& options)
    : groups_(options.groups),
      block_size_(options.block_size),
      largest_chunk_(options.max_num_batched_tokens),
      snapshot_blocks_(options.snapshot_blocks),
      enable_prefix_caching_(options.enable_prefix_caching),
      pool_(options.num_blocks),
      tree_(options.num_blocks, options.block_size, static_cast<int>(options.groups.size())) {
  for (const CacheGroup& group : groups_) {
    is_per_token_.push_back(is_per_token(group));
    needs_all_.push_back(needs_all(group));
    has_states_ |= !is_per_token_.back();
    has_windows_ |= is_per_token_.back() && !needs_all_.back();
  }
  runs_.resize(groups_.size());
}

std::int64_t BlockStore::most_held(std::int64_t tokens) const {
  return schedule::most_held(groups_, tokens, largest_chunk_, block_size_);
}

std::int64_t BlockStore::last_border(std::int64_t num_tokens) const {
  return (num_tokens - 1) / block_size_ * block_size_;
}

std::span<const TokenId> BlockStore::block_tokens(const Content& content, std::int64_t block) const {
  return content.tokens.subspan(static_cast<std::size_t>(block * block_size_),
                                static_cast<std::size_t>(block_size_));
}

BlockId BlockStore::take() {
  const auto taken = pool_.take();
  PLIMSOLL_CHECK(taken.has_value(), "the caller counted the available blocks");
  if (taken->was_cached) {
    tree_.forget(taken->block);
    ++num_evicted_;
  }
  return taken->block;
}

// Leading blocks that every group can do without computing; their nodes are in path_. A growing group needs
// all of them, a window those it still reads, a state its snapshot at just that border.
std::int64_t BlockStore::find(const Content& content) {
  path_.clear();
  if (!enable_prefix_caching_ || !content.reads_prefixes) return 0;
  std::ranges::fill(runs_, 0);
  std::int64_t best = 0;
  const std::int64_t most = last_border(std::ssize(content.tokens)) / block_size_;
  for (std::int64_t depth = 1; depth <= most; ++depth) {
    const PrefixId next =
        tree_.find(path_.empty() ? kNoPrefix : path_.back(),
                   content.key.of_block(depth - 1, block_size_, scratch_), block_tokens(content, depth - 1));
    if (next == kNoPrefix) break;
    path_.push_back(next);
    bool is_enough = true;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      runs_[g] = tree_.block(next, static_cast<int>(g)) == kNoBlock ? 0 : runs_[g] + 1;
      if (needs_all_[g] && runs_[g] < depth) return best;
      is_enough &= runs_[g] >= depth - first_found(g, depth);
    }
    if (is_enough) best = depth;
  }
  return best;
}

void BlockStore::reserve(SequenceBlocks& held, std::int64_t final_tokens) const {
  for (std::size_t g = 0; g < groups_.size(); ++g)
    held.tables[g].blocks.reserve(
        is_per_token_[g] ? static_cast<std::size_t>(blocks_for(final_tokens, block_size_)) : 1);
}

// The first block of a group that a sequence with so many found ones holds.
std::int64_t BlockStore::first_found(std::size_t group, std::int64_t num_found) const {
  if (is_per_token_[group]) return first_kept(groups_[group], num_found * block_size_, block_size_);
  return std::max<std::int64_t>(num_found - 1, 0);
}

void BlockStore::hold_found(SequenceBlocks& held, std::int64_t num_found) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    SequenceBlocks::Table& table = held.tables[g];
    const std::int64_t first = first_found(g, num_found);
    if (is_per_token_[g]) {
      table.first_kept = first;
      table.blocks.assign(static_cast<std::size_t>(first), kNoBlock);
    }
    for (std::int64_t i = first; i < num_found; ++i) {
      table.blocks.push_back(tree_.block(path_[static_cast<std::size_t>(i)], static_cast<int>(g)));
      pool_.hold(table.blocks.back());
    }
  }
  held.num_indexed = num_found;
  held.snapshot_position = num_found * block_size_;
  held.prefix = num_found > 0 ? path_[static_cast<std::size_t>(num_found - 1)] : kNoPrefix;
  tree_.hold(held.prefix);
}

std::optional<std::int64_t> BlockStore::admit(SequenceBlocks& held, const Content& content,
                                              std::int64_t final_tokens) {
  // The last token always needs one.
  if (pool_.num_available().value == 0 && !groups_.empty()) return std::nullopt;
  const std::int64_t num_tokens = std::ssize(content.tokens);
  const std::int64_t num_found = find(content);
  // What is found and only cached is one available block less, and one less to take; so only what others hold
  // too is a gain. A state that others hold has to be copied.
  std::int64_t needed = most_held(num_tokens);
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (std::int64_t i = first_found(g, num_found); is_per_token_[g] && i < num_found; ++i)
      needed -= pool_.references(tree_.block(path_[static_cast<std::size_t>(i)], static_cast<int>(g))) > 0;
  if (needed > pool_.num_available().value) return std::nullopt;

  held.tables.resize(groups_.size());
  // Steps of a running sequence allocate nothing: what it may need is there from its admission.
  reserve(held, final_tokens);
  hold_found(held, num_found);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& blocks = held.tables[g].blocks;
    const std::int64_t wanted = needs_all_[g]      ? blocks_for(num_tokens, block_size_)
                                : is_per_token_[g] ? 0
                                                   : 1;
    while (std::cmp_less(blocks.size(), wanted)) blocks.push_back(take());
  }
  return num_found * block_size_;
}

// The block of a group that holds earlier tokens of the sequence and is about to be written; null when all
// that is written goes to new blocks, or to blocks that nobody else can know.
BlockId* BlockStore::written_block(SequenceBlocks& held, std::size_t group, std::int64_t first) const {
  auto& blocks = held.tables[group].blocks;
  if (!is_per_token_[group]) return &blocks.front();
  if (!held.shares_tail || first % block_size_ == 0) return nullptr;
  return &blocks[static_cast<std::size_t>(first / block_size_)];
}

void BlockStore::copy_on_write(int group, BlockId& block, std::vector<Copy>& copies) {
  const BlockId copy = take();
  copies.push_back({group, block, copy});
  pool_.release(block);
  block = copy;
  ++num_copied_;
}

bool BlockStore::extend(SequenceBlocks& held, std::int64_t first, std::int64_t count,
                        std::vector<Copy>& copies) {
  if (first + count <= held.writable) return true;
  const std::int64_t end = blocks_for(first + count, block_size_);
  std::int64_t needed = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (is_per_token_[g]) needed += std::max<std::int64_t>(end - std::ssize(held.tables[g].blocks), 0);
    const BlockId* const written = written_block(held, g, first);
    needed += written && pool_.references(*written) > 1;
  }
  if (needed > pool_.num_available().value) return false;

  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockId* const written = written_block(held, g, first);
    if (written && pool_.references(*written) > 1) copy_on_write(static_cast<int>(g), *written, copies);
    auto& blocks = held.tables[g].blocks;
    while (is_per_token_[g] && std::cmp_less(blocks.size(), end)) blocks.push_back(take());
  }
  // What the tree offers stays there while there is room for a copy, and else is given up.
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockId* const written = written_block(held, g, first);
    if (!written || !pool_.is_indexed(*written)) continue;
    if (pool_.num_available().value > 0) {
      copy_on_write(static_cast<int>(g), *written, copies);
    } else {
      tree_.forget(*written);
      pool_.unmark_cached(*written);
    }
  }
  held.shares_tail = false;
  if (!has_states_) held.writable = end * block_size_;  // a state is written by every step
  return true;
}

std::int64_t BlockStore::chunk(std::int64_t first, std::int64_t wanted, std::int64_t length) const {
  if (!has_states_ || !enable_prefix_caching_) return wanted;
  const std::int64_t end = first + wanted, last = last_border(length);
  if (first < last && last < end) return last - first;
  const std::int64_t border = end / block_size_ * block_size_;
  return end < length && border > first ? border - first : wanted;
}

void BlockStore::index_full_blocks(SequenceBlocks& held, const Content& content, std::int64_t num_computed) {
  for (; (held.num_indexed + 1) * block_size_ <= num_computed; ++held.num_indexed) {
    const PrefixId next =
        tree_.reach(held.prefix, content.key.of_block(held.num_indexed, block_size_, scratch_),
                    block_tokens(content, held.num_indexed));
    tree_.release(std::exchange(held.prefix, next));
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!is_per_token_[g]) continue;
      const BlockId block = held.tables[g].blocks[static_cast<std::size_t>(held.num_indexed)];
      if (block != kNoBlock && tree_.offer(next, static_cast<int>(g), block)) pool_.mark_cached(block);
    }
  }
}

void BlockStore::keep_states(SequenceBlocks& held) {
  held.snapshot_position = held.num_indexed * block_size_;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (is_per_token_[g]) continue;
    const BlockId block = held.tables[g].blocks.front();
    if (tree_.offer(held.prefix, static_cast<int>(g), block)) pool_.mark_cached(block);
  }
}

void BlockStore::slide_windows(SequenceBlocks& held, std::int64_t num_computed) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    auto& table = held.tables[g];
    const std::int64_t kept = first_kept(groups_[g], num_computed, block_size_);
    for (; table.first_kept < kept; ++table.first_kept)
      pool_.release(std::exchange(table.blocks[static_cast<std::size_t>(table.first_kept)], kNoBlock));
  }
}

void BlockStore::computed(SequenceBlocks& held, const Content& content, std::int64_t num_computed,
                          bool is_settled) {
  if (enable_prefix_caching_) {
    index_full_blocks(held, content, num_computed);
    if (has_states_ && is_settled && num_computed % block_size_ == 0) {
      const bool is_due =
          num_computed - held.snapshot_position >= std::int64_t{snapshot_blocks_} * block_size_ ||
          num_computed == last_border(std::ssize(content.tokens));
      if (is_due) keep_states(held);
    }
  }
  if (has_windows_) slide_windows(held, num_computed);
}

void BlockStore::release(SequenceBlocks& held) {
  std::size_t longest = 0;
  for (std::size_t g = 0; g < held.tables.size(); ++g) {
    const auto& blocks = held.tables[g].blocks;
    if (is_per_token_[g])
      longest = std::max(longest, blocks.size());
    else
      pool_.release(blocks.front());
  }
  for (std::size_t i = longest; i-- > 0;)
    for (std::size_t g = 0; g < held.tables.size(); ++g) {
      const auto& blocks = held.tables[g].blocks;
      if (is_per_token_[g] && i < blocks.size() && blocks[i] != kNoBlock) pool_.release(blocks[i]);
    }
  tree_.release(held.prefix);
  held = SequenceBlocks{};
}

SequenceBlocks BlockStore::share(SequenceBlocks& parent, std::int64_t num_tokens, std::int64_t final_tokens) {
  const std::int64_t num_shared = blocks_for(num_tokens, block_size_);
  SequenceBlocks child;
  child.tables.resize(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    child.tables[g].first_kept = parent.tables[g].first_kept;
    auto& blocks = child.tables[g].blocks;
    blocks = parent.tables[g].blocks;
    // What the parent has for the rest of its prompt stays its own.
    if (is_per_token_[g]) blocks.resize(static_cast<std::size_t>(num_shared));
    for (const BlockId block : blocks)
      if (block != kNoBlock) pool_.hold(block);
  }
  reserve(child, final_tokens);
  child.prefix = parent.prefix;
  tree_.hold(child.prefix);
  child.num_indexed = parent.num_indexed;
  child.snapshot_position = parent.snapshot_position;
  child.shares_tail = parent.shares_tail = true;
  parent.writable = 0;
  return child;
}

std::vector<KeptPrefix> BlockStore::kept() const {
  std::vector<KeptPrefix> list;
  std::unordered_map<PrefixId, std::int32_t> index;
  std::vector<PrefixId> chain;
  for (BlockId block = pool_.newest_cached(); block != kNoBlock; block = pool_.older_cached(block)) {
    chain.clear();
    for (PrefixId at = tree_.prefix_of(block); at != kNoPrefix && !index.contains(at); at = tree_.parent(at))
      chain.push_back(at);
    for (std::size_t i = chain.size(); i-- > 0;) {
      const PrefixId parent = tree_.parent(chain[i]);
      const auto tokens = tree_.tokens(chain[i]);
      KeptPrefix kept{.parent = parent == kNoPrefix ? -1 : index.at(parent),
                      .tokens = {tokens.begin(), tokens.end()},
                      .key = tree_.key(chain[i]),
                      .blocks = std::vector<BlockId>(groups_.size(), kNoBlock)};
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        const BlockId content = tree_.block(chain[i], static_cast<int>(g));
        if (content != kNoBlock && pool_.references(content) == 0) kept.blocks[g] = content;
      }
      index.emplace(chain[i], static_cast<std::int32_t>(list.size()));
      list.push_back(std::move(kept));
    }
  }
  return list;
}

Status BlockStore::restore(std::vector<KeptPrefix>& prefixes) {
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const KeptPrefix& kept = prefixes[i];
    if (kept.parent < -1 || kept.parent >= static_cast<std::int64_t>(i) ||
        std::ssize(kept.tokens) != block_size_ || kept.blocks.size() != groups_.size())
      return fail(ErrorCode::kMalformed, "the list of kept prefixes does not hang together");
  }
  std::vector<PrefixId> nodes;
  std::vector<BlockId> taken;
  for (KeptPrefix& kept : prefixes) {
    const PrefixId parent = kept.parent < 0 ? kNoPrefix : nodes[static_cast<std::size_t>(kept.parent)];
    nodes.push_back(tree_.reach(parent, kept.key, kept.tokens));
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (kept.blocks[g] == kNoBlock) continue;
      kept.blocks[g] = kNoBlock;
      if (pool_.num_available() == pool_.num_cached()) continue;  // what was restored is not evicted again
      const BlockId block = take();
      taken.push_back(block);
      if (!tree_.offer(nodes.back(), static_cast<int>(g), block)) continue;  // it is in the list twice
      pool_.mark_cached(block);
      kept.blocks[g] = block;
    }
  }
  // The first of the list was released last.
  for (std::size_t i = taken.size(); i-- > 0;) pool_.release(taken[i]);
  for (const PrefixId node : nodes) tree_.release(node);
  return {};
}

}  // namespace plimsoll::schedule
