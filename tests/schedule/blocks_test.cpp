// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "schedule/block_manager.h"
#include "schedule/prefix_tree.h"

namespace plimsoll::schedule {
namespace {

TEST(BlockManager, FreeBlocksGoBeforeCachedOnesAndTheseOldestFirst) {
  BlockManager pool(Blocks(3));
  const BlockId a = pool.take()->block, b = pool.take()->block, c = pool.take()->block;
  EXPECT_FALSE(pool.take());
  pool.mark_cached(a);
  pool.mark_cached(b);
  pool.release(b);
  pool.release(a);
  pool.release(c);
  EXPECT_EQ(pool.num_cached(), Blocks(2));
  EXPECT_EQ(pool.num_available(), Blocks(3));
  auto taken = pool.take();
  EXPECT_EQ(taken->block, c);
  EXPECT_FALSE(taken->was_cached);
  pool.hold(b);  // wanted again: now a is the only one to evict
  taken = pool.take();
  EXPECT_EQ(taken->block, a);
  EXPECT_TRUE(taken->was_cached);
  EXPECT_FALSE(pool.take());
  pool.release(a);  // evicted content is not cached a second time
  EXPECT_EQ(pool.num_cached(), Blocks(0));
}

TEST(BlockManager, ASharedBlockIsFreeOnlyAfterItsLastHolder) {
  BlockManager pool(Blocks(1));
  const BlockId block = pool.take()->block;
  pool.hold(block);
  EXPECT_EQ(pool.references(block), 2);
  pool.release(block);
  EXPECT_EQ(pool.num_used(), Blocks(1));
  EXPECT_FALSE(pool.take());
  pool.release(block);
  EXPECT_EQ(pool.num_used(), Blocks(0));
}

TEST(BlockManager, RandomTablesAgreeWithItsCounts) {
  std::mt19937 random(7);
  BlockManager pool(Blocks(24));
  std::vector<std::vector<BlockId>> tables(6);
  std::set<BlockId> indexed;
  for (int i = 0; i < 20'000; ++i) {
    auto& table = tables[random() % tables.size()];
    const auto& other = tables[random() % tables.size()];
    switch (random() % 5) {
      case 0:
      case 1:
        if (const auto taken = pool.take()) {
          ASSERT_EQ(taken->was_cached, indexed.erase(taken->block) > 0);
          table.push_back(taken->block);
        }
        break;
      case 2:
        if (!other.empty() && std::find(table.begin(), table.end(), other.front()) == table.end()) {
          const BlockId shared = other.front();
          pool.hold(shared);
          table.push_back(shared);
        }
        break;
      case 3:
        if (!table.empty()) {
          pool.mark_cached(table.back());
          indexed.insert(table.back());
        }
        break;
      default:
        for (const BlockId block : table) pool.release(block);
        table.clear();
    }
    std::map<BlockId, int> holders;
    for (const auto& each : tables)
      for (const BlockId block : each) ++holders[block];
    std::int64_t cached = 0;
    for (BlockId block = 0; block < 24; ++block) {
      ASSERT_EQ(pool.references(block), holders.contains(block) ? holders[block] : 0);
      cached += indexed.contains(block) && !holders.contains(block);
    }
    ASSERT_EQ(pool.num_used().value, static_cast<std::int64_t>(holders.size()));
    ASSERT_EQ(pool.num_cached().value, cached);
    ASSERT_EQ(pool.num_used() + pool.num_available(), pool.total());
  }
}

TEST(PrefixTree, ChainsAreFoundAndForgotten) {
  PrefixTree tree(Blocks(100), 2, 1);
  const std::vector<TokenId> one{1, 2}, two{3, 4};
  const PrefixId first = tree.reach(kNoPrefix, "", one);
  const PrefixId second = tree.reach(first, "", two);
  EXPECT_TRUE(tree.offer(first, 0, 10));
  EXPECT_TRUE(tree.offer(second, 0, 11));
  tree.release(second);
  tree.release(first);
  EXPECT_EQ(tree.find(kNoPrefix, "", one), first);
  EXPECT_EQ(tree.find(first, "", two), second);
  EXPECT_EQ(tree.block(second, 0), 11);
  EXPECT_EQ(tree.find(kNoPrefix, "", two), kNoPrefix) << "the same tokens in another place";
  EXPECT_EQ(tree.find(second, "", two), kNoPrefix);
  tree.forget(10);
  EXPECT_EQ(tree.block(first, 0), kNoBlock) << "the prefix is known, its block is gone";
  EXPECT_EQ(tree.num_nodes(), 2u);
  tree.forget(11);
  EXPECT_EQ(tree.num_nodes(), 0u) << "nobody needs the way to it any more";
  EXPECT_EQ(tree.find(kNoPrefix, "", one), kNoPrefix);
  tree.forget(99);
}

TEST(PrefixTree, TheFirstBlockWithAContentStays) {
  PrefixTree tree(Blocks(100), 2, 2);
  const std::vector<TokenId> tokens{1, 2};
  const PrefixId node = tree.reach(kNoPrefix, "salt", tokens);
  EXPECT_EQ(tree.reach(kNoPrefix, "salt", tokens), node);
  EXPECT_TRUE(tree.offer(node, 0, 3));
  EXPECT_FALSE(tree.offer(node, 0, 4));
  EXPECT_TRUE(tree.offer(node, 1, 4)) << "each group has one of its own";
  EXPECT_EQ(tree.block(node, 0), 3);
  EXPECT_EQ(tree.find(kNoPrefix, "", tokens), kNoPrefix);
  EXPECT_EQ(tree.find(kNoPrefix, "salt2", tokens), kNoPrefix);
}

TEST(PrefixTree, ChainsOutliveTheirBlocksInAnyNumber) {
  PrefixTree tree(Blocks(2), 1, 1);
  PrefixId at = kNoPrefix;
  for (TokenId token = 0; token < 100; ++token) {
    const PrefixId next = tree.reach(at, "", std::vector{token});
    tree.release(at);
    at = next;
  }
  EXPECT_TRUE(tree.offer(at, 0, 1));
  EXPECT_EQ(tree.num_nodes(), 100u);
  PrefixId found = kNoPrefix;
  for (TokenId token = 0; token < 100; ++token) found = tree.find(found, "", std::vector{token});
  EXPECT_EQ(found, at);
  tree.release(at);
  tree.forget(1);
  EXPECT_EQ(tree.num_nodes(), 0u);
}

TEST(PrefixTree, RandomEntriesAgreeWithAMap) {
  std::mt19937 random(3);
  PrefixTree tree(Blocks(40), 2, 1);
  std::map<std::vector<TokenId>, BlockId> known;  // whole prefix -> its block
  for (int i = 0; i < 20'000; ++i) {
    const auto block = static_cast<BlockId>(random() % 40);
    std::erase_if(known, [&](const auto& entry) { return entry.second == block; });
    tree.forget(block);
    std::vector<TokenId> prefix;
    PrefixId at = kNoPrefix;
    for (auto depth = random() % 4 + 1; depth > 0; --depth) {
      const std::vector<TokenId> tokens{static_cast<TokenId>(random() % 3),
                                        static_cast<TokenId>(random() % 3)};
      prefix.insert(prefix.end(), tokens.begin(), tokens.end());
      const PrefixId next = tree.reach(at, "", tokens);
      ASSERT_EQ(tree.find(at, "", tokens), next);
      tree.release(at);
      at = next;
    }
    const auto expected = known.find(prefix);
    ASSERT_EQ(tree.block(at, 0), expected == known.end() ? kNoBlock : expected->second);
    ASSERT_EQ(tree.offer(at, 0, block), expected == known.end());
    if (expected == known.end()) known[prefix] = block;
    tree.release(at);
    std::set<std::vector<TokenId>> ways;
    for (const auto& [tokens, unused] : known)
      for (std::size_t length = 2; length <= tokens.size(); length += 2)
        ways.insert({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(length)});
    ASSERT_EQ(tree.num_nodes(), ways.size());
  }
}

}  // namespace
}  // namespace plimsoll::schedule
