// SPDX-License-Identifier: Apache-2.0
// The generated tables hold what the reference says, and sets of code points obey their algebra. The counts
// were taken from tokenizers 0.23.3 directly, not from the table.
#include <gtest/gtest.h>

#include <random>

#include "text/unicode_sets.h"

namespace plimsoll::text {
namespace {

// Surrogates are no characters: they count for nothing.
std::size_t size(const CodePointSet& set) {
  std::size_t count = 0;
  const CodePointSet characters = set & ~CodePointSet::of(0xD800, 0xDFFF);
  for (const CodePoints& range : characters.ranges()) count += range.last - range.first + 1;
  return count;
}

std::size_t size(std::string_view name) {
  const auto set = set_named(name);
  EXPECT_TRUE(set) << name;
  return set ? size(*set) : 0;
}

TEST(UnicodeSets, AreAsLargeAsTheReferenceSays) {
  const std::pair<const char*, std::size_t> kSizes[] = {
      {"L", 141'028},     {"Lu", 1'858},       {"Ll", 2'258},
      {"Lt", 31},         {"Lm", 404},         {"Lo", 136'477},
      {"M", 2'501},       {"N", 1'911},        {"Nd", 760},
      {"P", 855},         {"S", 8'514},        {"Z", 19},
      {"C", 957'236},     {"Cn", 819'533},     {"Han", 99'030},
      {"Hiragana", 381},  {"Katakana", 321},   {"Latin", 1'487},
      {"Hangul", 11'739}, {"White_Space", 25}, {"Alphabetic", 142'759},
      {"Alnum", 143'519}, {"LC", 4'147},       {"Emoji", 1'431},
      {"Any", 1'112'064}};
  for (const auto& [name, expected] : kSizes) EXPECT_EQ(size(name), expected) << name;
}

TEST(UnicodeSets, NamesAreTakenHoweverTheyAreWritten) {
  EXPECT_EQ(set_named("white space"), set_named("White_Space"));
  EXPECT_EQ(set_named("Uppercase-Letter"), set_named("lu"));
  EXPECT_EQ(set_named("Letter"), set_named("L"));
  EXPECT_FALSE(set_named("Script=Han"));
  EXPECT_FALSE(set_named(""));
}

TEST(UnicodeSets, TheTwoEnginesOfTheReferenceDiffer) {
  const auto differ = [](std::string_view a, std::string_view b) {
    return size(*set_named(a) & ~*set_named(b));
  };
  EXPECT_EQ(differ("rust_numeric", "N"), 13u);  // of a later Unicode version
  EXPECT_EQ(differ("N", "rust_numeric"), 0u);
  EXPECT_EQ(size("rust_punctuation"), 726u);  // of an earlier one
  EXPECT_TRUE(set_named("rust_punctuation")->contains(U'$'));
  EXPECT_FALSE(set_named("P")->contains(U'$'));
  EXPECT_EQ(set_named("rust_white_space"), set_named("White_Space"));
  EXPECT_EQ(differ("rust_word", "Word"), 2u);  // the two joiners
  EXPECT_EQ(size("word_outside_class"), 6u);
  EXPECT_TRUE(set_named("bert_control")->contains(0));
  EXPECT_FALSE(set_named("bert_control")->contains(U'\n'));
  EXPECT_TRUE(set_named("bert_ideograph")->contains(0x4E00));
  EXPECT_FALSE(set_named("bert_ideograph")->contains(0x3042));
  EXPECT_TRUE(set_named("bert_accent")->contains(0x301));
  EXPECT_FALSE(set_named("bert_accent")->contains(0x903));  // a spacing mark: only StripAccents drops it
  EXPECT_TRUE(set_named("accent")->contains(0x903));
}

TEST(UnicodeSets, CategoriesOfCodePoints) {
  const char* const kCategories[] = {"Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd",
                                     "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm",
                                     "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co"};
  const auto category_of = [&](char32_t c) {
    std::string found;
    for (const char* name : kCategories)
      if (set_named(name)->contains(c)) found += name;
    return found;
  };
  const std::pair<char32_t, const char*> kExpected[] = {
      {U'a', "Ll"},  {U'A', "Lu"},  {0x1C5, "Lt"},  {U'1', "Nd"},     {0x2160, "Nl"}, {0xBD, "No"},
      {U'_', "Pc"},  {U' ', "Zs"},  {0x2028, "Zl"}, {U'\n', "Cc"},    {0x200D, "Cf"}, {0x1F600, "So"},
      {0x301, "Mn"}, {0x903, "Mc"}, {0x1C89, "Lu"}, {0x10FFFF, "Cn"}, {0xE000, "Co"}, {U'$', "Sc"}};
  for (const auto& [c, category] : kExpected)
    EXPECT_EQ(category_of(c), category) << std::hex << std::size_t{c};
  std::size_t sum = 0;
  for (const char* name : kCategories) sum += size(name);
  EXPECT_EQ(sum, size("Any"));
}

TEST(UnicodeSets, OtherCases) {
  const auto cases_of = [](char32_t c) { return CodePointSet::of(c, c).with_other_cases(); };
  EXPECT_EQ(cases_of(U's'), CodePointSet({{U's', U's'}, {U'S', U'S'}, {0x17F, 0x17F}}));
  EXPECT_EQ(cases_of(0x212A), CodePointSet({{U'k', U'k'}, {U'K', U'K'}, {0x212A, 0x212A}}));
  EXPECT_EQ(cases_of(0x3C2), CodePointSet({{0x3A3, 0x3A3}, {0x3C2, 0x3C3}}));
  EXPECT_EQ(cases_of(U'1'), CodePointSet::of(U'1', U'1'));
  EXPECT_EQ(size(CodePointSet::of(U'a', U'z').with_other_cases()), 54u);
  EXPECT_EQ(size(set_named("Lu")->with_other_cases()), 3'266u);
}

TEST(UnicodeSets, Algebra) {
  std::mt19937 random(1);
  const auto some_set = [&] {
    std::vector<CodePoints> ranges;
    for (auto i = random() % 6; i > 0; --i) {
      const auto first = static_cast<char32_t>(random() % 60);
      ranges.push_back({first, first + static_cast<char32_t>(random() % 6)});
    }
    return CodePointSet(std::move(ranges));
  };
  for (int round = 0; round < 300; ++round) {
    const CodePointSet a = some_set(), b = some_set();
    for (char32_t c = 0; c < 70; ++c) {
      ASSERT_EQ((a | b).contains(c), a.contains(c) || b.contains(c));
      ASSERT_EQ((a & b).contains(c), a.contains(c) && b.contains(c));
      ASSERT_EQ((~a).contains(c), !a.contains(c));
    }
    ASSERT_EQ(~~a, a);
    ASSERT_EQ(~(a | b), ~a & ~b);
  }
  EXPECT_TRUE(CodePointSet({{5, 4}}).empty());
  EXPECT_EQ(~CodePointSet(), CodePointSet::of(0, kLastCodePoint));
}

}  // namespace
}  // namespace plimsoll::text
