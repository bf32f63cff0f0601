// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/prefix_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

namespace plimsoll::text {
namespace {

using Found = std::vector<std::pair<std::size_t, std::int32_t>>;

Found prefixes_of(const PrefixTrie& trie, std::string_view text, PrefixTrie::Node node = PrefixTrie::kRoot) {
  Found found;
  trie.each_prefix(
      text, [&](std::size_t length, std::int32_t value) { found.emplace_back(length, value); }, node);
  return found;
}

TEST(PrefixTrie, FindsWhatAMapFinds) {
  std::mt19937 random(1);
  for (const unsigned letters : {2u, 3u, 256u}) {
    const auto any_text = [&](std::size_t longest) {
      std::string text(random() % (longest + 1), '\0');
      for (char& c : text) c = static_cast<char>(random() % letters);
      return text;
    };
    std::map<std::string, std::int32_t> map;
    std::vector<std::string> texts;
    for (int i = 0; i < 3000; ++i) texts.push_back(any_text(letters == 256 ? 3 : 12));
    std::vector<PrefixTrie::Key> keys;
    for (const std::string& text : texts) {
      keys.push_back({text, static_cast<std::int32_t>(keys.size())});
      map[text] = keys.back().value;
    }
    const PrefixTrie trie(keys);
    for (int i = 0; i < 2000; ++i) {
      const std::string text = any_text(20);
      Found expected;
      for (std::size_t length = 1; length <= text.size(); ++length)
        if (const auto at = map.find(text.substr(0, length)); at != map.end())
          expected.emplace_back(length, at->second);
      EXPECT_EQ(prefixes_of(trie, text), expected);
    }
  }
}

TEST(PrefixTrie, StartsAtAnyNode) {
  const PrefixTrie trie({{"##", 0}, {"##a", 1}, {"##ab", 2}, {"a", 3}, {"", 4}});
  const auto node = trie.node_of("##");
  ASSERT_TRUE(node);
  EXPECT_EQ(prefixes_of(trie, "abc", *node), (Found{{1, 1}, {2, 2}}));
  EXPECT_EQ(prefixes_of(trie, "abc"), (Found{{1, 3}}));
  EXPECT_FALSE(trie.node_of("#a"));
  EXPECT_EQ(trie.node_of(""), PrefixTrie::kRoot);
}

TEST(PrefixTrie, AnEmptyOneFindsNothing) {
  EXPECT_TRUE(prefixes_of(PrefixTrie(), std::string_view("a\0b", 3)).empty());
  EXPECT_TRUE(prefixes_of(PrefixTrie(), std::string_view("\0", 1)).empty());
}

}  // namespace
}  // namespace plimsoll::text
