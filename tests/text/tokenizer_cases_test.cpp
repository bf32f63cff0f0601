// SPDX-License-Identifier: Apache-2.0
// Faults that users of other engines met, each with a tokenizer of a few tokens: merges whose halves hold
// blanks, runs that exhaust a stack or a day, and the four rules for the blank after a special token.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "artifact/artifact.h"
#include "tests/testing/golden.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

using Ids = std::vector<TokenId>;

std::shared_ptr<const Tokenizer> load_case(const std::string& relative) {
  auto artifact = artifact::open(testing::data_path("cases/" + relative));
  EXPECT_TRUE(artifact) << (artifact ? "" : artifact.error().describe());
  if (!artifact) return nullptr;
  auto tokenizer = load_tokenizer(**artifact);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().describe());
  return tokenizer ? *tokenizer : nullptr;
}

Ids plain(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {false, true});
}

TEST(TokenizerCases, MergesAsPairsMayHoldBlanks) {
  const auto tokenizer = load_case("merges_as_pairs/tokenizer.json");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(plain(*tokenizer, "a b"), (Ids{4}));
  EXPECT_EQ(plain(*tokenizer, "bb a"), (Ids{6}));
  EXPECT_EQ(plain(*tokenizer, "abb a b"), (Ids{0, 5, 2, 4}));
  EXPECT_EQ(plain(*tokenizer, "b a"), (Ids{1, 7}));
  EXPECT_EQ(plain(*tokenizer, " a a"), (Ids{2, 3, 0}));
}

TEST(TokenizerCases, MergesAsStringsAreReadToo) {
  const auto tokenizer = load_case("merges_as_pairs/old_style.json");
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(plain(*tokenizer, "abab"), (Ids{2, 2}));
}

std::string repeated(std::string_view unit, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += unit;
  return text;
}

// What a long text of one unit becomes: how many ids.
struct Run {
  std::string text;
  std::size_t ids;
};

std::vector<Run> long_runs() {
  return {{repeated("Z", 131072), 32768}, {repeated("\n", 40000), 10000}, {repeated(" ", 40000) + "x", 20002},
          {repeated(".", 26001), 13001},  {repeated("가", 30000), 90000}, {repeated("us", 20000), 40000},
          {repeated("9", 10000), 10000}};
}

void expect_long_runs(const Tokenizer& tokenizer) {
  for (const Run& run : long_runs()) {
    const Ids ids = plain(tokenizer, run.text);
    EXPECT_EQ(ids.size(), run.ids) << run.text.substr(0, 8);
    EXPECT_TRUE(tokenizer.decode(ids, false) == run.text) << run.text.substr(0, 8);
  }
}

TEST(TokenizerCases, LongRuns) {
  const auto tokenizer = load_case("long_runs");
  ASSERT_TRUE(tokenizer);
  expect_long_runs(*tokenizer);
}

TEST(TokenizerCases, LongRunsOnASmallStack) {
  const auto tokenizer = load_case("long_runs");
  ASSERT_TRUE(tokenizer);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* argument) -> void* {
                  expect_long_runs(*static_cast<const Tokenizer*>(argument));
                  return nullptr;
                },
                const_cast<Tokenizer*>(tokenizer.get())),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

class SpaceAfterSpecial : public ::testing::TestWithParam<const char*> {};

TEST_P(SpaceAfterSpecial, FollowsTheFilesRule) {
  const std::string rule = GetParam();
  const auto tokenizer = load_case("space_after_special/" + rule);
  ASSERT_TRUE(tokenizer);
  const bool prefixes_all = rule == "legacy" || rule == "always";
  EXPECT_EQ(plain(*tokenizer, "<|x|>us"), prefixes_all ? (Ids{17, 16}) : (Ids{17, 15}));
  EXPECT_EQ(plain(*tokenizer, "<|x|> us"), rule == "legacy" ? (Ids{17, 4, 15}) : (Ids{17, 16}));
  const std::map<std::string, Ids> between = {{"legacy", {11, 17, 3, 8, 3, 9}},
                                              {"first", {11, 17, 8, 3, 9}},
                                              {"always", {11, 17, 8, 3, 9}},
                                              {"never", {10, 17, 8, 3, 9}}};
  EXPECT_EQ(plain(*tokenizer, "ab<|x|> b c"), between.at(rule));
  EXPECT_EQ(plain(*tokenizer, " ab"), rule == "legacy" ? (Ids{3, 11}) : (Ids{11}));
}

INSTANTIATE_TEST_SUITE_P(TokenizerCases, SpaceAfterSpecial,
                         ::testing::Values("legacy", "first", "always", "never"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace plimsoll::text
