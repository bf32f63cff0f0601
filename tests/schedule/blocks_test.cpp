// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "schedule/block_manager.h"
#include "schedule/prefix_index.h"

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

TEST(PrefixIndex, ChainsAreFoundAndForgotten) {
  PrefixIndex index(Blocks(100), 2);
  const std::vector<TokenId> one{1, 2}, two{3, 4};
  const auto first = index.add(kNoPrefix, "", one, 10);
  const auto second = index.add(first.prefix, "", two, 11);
  EXPECT_TRUE(first.is_new && second.is_new);
  ASSERT_TRUE(index.find(kNoPrefix, "", one));
  EXPECT_EQ(index.find(kNoPrefix, "", one)->block, 10);
  EXPECT_EQ(index.find(first.prefix, "", two)->block, 11);
  EXPECT_FALSE(index.find(kNoPrefix, "", two)) << "the same tokens in another place";
  EXPECT_FALSE(index.find(second.prefix, "", two));
  index.forget(10);
  EXPECT_FALSE(index.find(kNoPrefix, "", one));
  EXPECT_EQ(index.size(), 1u);
  const auto again = index.add(kNoPrefix, "", one, 12);
  EXPECT_NE(again.prefix, first.prefix)
      << "what stood behind an evicted block is not reached by its successor";
  index.forget(99);
}

TEST(PrefixIndex, TheFirstBlockWithAContentStays) {
  PrefixIndex index(Blocks(100), 2);
  const std::vector<TokenId> tokens{1, 2};
  const auto first = index.add(kNoPrefix, "salt", tokens, 3);
  const auto twin = index.add(kNoPrefix, "salt", tokens, 4);
  EXPECT_FALSE(twin.is_new);
  EXPECT_EQ(twin.prefix, first.prefix);
  EXPECT_EQ(index.find(kNoPrefix, "salt", tokens)->block, 3);
  EXPECT_FALSE(index.find(kNoPrefix, "", tokens));
  EXPECT_FALSE(index.find(kNoPrefix, "salt2", tokens));
}

TEST(PrefixIndex, RandomEntriesAgreeWithAMap) {
  std::mt19937 random(3);
  PrefixIndex index(Blocks(40), 2);
  struct Known {
    BlockId block;
    PrefixId prefix;
  };
  std::map<std::pair<PrefixId, std::vector<TokenId>>, Known> known;
  std::map<BlockId, std::pair<PrefixId, std::vector<TokenId>>> key_of_block;
  for (int i = 0; i < 20'000; ++i) {
    const auto block = static_cast<BlockId>(random() % 40);
    if (const auto key = key_of_block.find(block); key != key_of_block.end()) {
      index.forget(block);
      known.erase(key->second);
      key_of_block.erase(key);
    }
    PrefixId previous = kNoPrefix;
    if (!known.empty() && random() % 2 == 0)
      previous = std::next(known.begin(), static_cast<int>(random() % known.size()))->second.prefix;
    const std::vector<TokenId> tokens{static_cast<TokenId>(random() % 3), static_cast<TokenId>(random() % 3)};
    const auto expected = known.find({previous, tokens});
    const auto found = index.find(previous, "", tokens);
    ASSERT_EQ(found.has_value(), expected != known.end());
    if (found) {
      ASSERT_EQ(found->block, expected->second.block);
      ASSERT_EQ(found->prefix, expected->second.prefix);
    }
    const auto added = index.add(previous, "", tokens, block);
    ASSERT_EQ(added.is_new, !found);
    if (added.is_new) {
      known[{previous, tokens}] = {block, added.prefix};
      key_of_block[block] = {previous, tokens};
    }
    ASSERT_EQ(index.size(), known.size());
  }
}

}  // namespace
}  // namespace plimsoll::schedule
