// SPDX-License-Identifier: Apache-2.0
// Compiled normalisation rules against both references, which apply them differently, and damaged ones.
#include "text/tokenizer/charsmap.h"

#include <gtest/gtest.h>

#include "tests/testing/golden.h"
#include "tests/text/model_rows.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

std::string apply_longest(const Charsmap& charsmap, std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto match = charsmap.longest(text);
    out += match ? match->replacement : text.substr(0, 1);
    text.remove_prefix(match ? match->bytes : 1);
  }
  return out;
}

std::string rewrite(const Charsmap& charsmap, std::string_view text) {
  Rewriter out(text, false);
  charsmap.apply(out);
  return out.take_text();
}

TEST(Charsmap, AppliesRulesAsBothReferencesDo) {
  const auto rows = read_rows(testing::data_path("text/charsmap.jsonl"));
  const auto charsmap = Charsmap::parse(from_hex(*rows.at(0)["hex"].as_string()));
  ASSERT_TRUE(charsmap);
  int different = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::string& text = *rows[i]["text"].as_string();
    EXPECT_EQ(rewrite(*charsmap, text), *rows[i]["shortest"].as_string()) << dump(rows[i]);
    EXPECT_EQ(apply_longest(*charsmap, text), *rows[i]["longest"].as_string()) << dump(rows[i]);
    different += rows[i]["shortest"] != rows[i]["longest"];
  }
  EXPECT_EQ(rows.size(), 301u);
  EXPECT_GT(different, 20);
}

TEST(Charsmap, RemembersWhichCharacterEachOneStandsFor) {
  const auto rows = read_rows(testing::data_path("text/charsmap.jsonl"));
  const auto charsmap = Charsmap::parse(from_hex(*rows.at(0)["hex"].as_string()));
  ASSERT_TRUE(charsmap);
  Rewriter out("x½\x01y", true);
  charsmap->apply(out);
  EXPECT_EQ(out.take_text(), "x1⁄2y");
  const Span half{1, 3};
  EXPECT_EQ(out.take_origin(), (std::vector<Span>{{0, 1}, half, half, half, half, half, {4, 5}}));
}

TEST(Charsmap, DamagedOnesAreRefusedOrHarmless) {
  const std::string blob =
      from_hex(*read_rows(testing::data_path("text/charsmap.jsonl")).at(0)["hex"].as_string());
  EXPECT_FALSE(Charsmap::parse(""));
  EXPECT_FALSE(Charsmap::parse(std::string(4, '\0')));
  EXPECT_FALSE(Charsmap::parse(std::string(8, '\xFF')));
  EXPECT_FALSE(Charsmap::parse(blob + std::string(300, 'x')));
  std::uint32_t random = 1;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = blob;
    for (int i = 0; i < 40; ++i) {
      random = random * 1664525 + 1013904223;
      damaged[4 + (random >> 8) % (damaged.size() - 4)] = static_cast<char>(random >> 4);
    }
    if (const auto charsmap = Charsmap::parse(damaged)) {
      rewrite(*charsmap, "abcДa\u0301½한 x");
      apply_longest(*charsmap, "abcДa\u0301½한 x");
    }
  }
}

}  // namespace
}  // namespace plimsoll::text
