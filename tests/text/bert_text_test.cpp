// SPDX-License-Identifier: Apache-2.0
// BERT's text preparation and the small normalizers against the reference on random text.
#include "text/tokenizer/bert_text.h"

#include <gtest/gtest.h>

#include "tests/testing/golden.h"
#include "tests/text/model_rows.h"
#include "tests/text/reference_rows.h"
#include "text/tokenizer/reference_unicode.h"

namespace plimsoll::text {
namespace {

template <class Rewrite>
std::string rewritten(const std::string& text, Rewrite&& rewrite) {
  Rewriter out(text, false);
  rewrite(out);
  return out.take_text();
}

// In the order of the rows' "bert".
const BertTextOptions kVariants[] = {
    {true, false, false, false}, {false, true, false, false}, {false, false, true, false},
    {false, false, false, true}, {true, true, true, true},    {true, true, std::nullopt, true},
    {true, true, false, true},
};

TEST(BertText, RewritesAndSplitsAsTheReferenceDoes) {
  int rows = 0;
  for (const Json& row : read_rows(testing::data_path("text/bert_text.jsonl"))) {
    const std::string& text = *row["text"].as_string();
    ASSERT_EQ(row["bert"].size(), std::size(kVariants));
    for (std::size_t i = 0; i < std::size(kVariants); ++i)
      EXPECT_EQ(rewritten(text, [&](Rewriter& out) { bert_normalize(kVariants[i], out); }),
                *row["bert"].items()[i].as_string())
          << i << dump(row);
    EXPECT_EQ(rewritten(text, lowercase), *row["lowercase"].as_string()) << dump(row);
    EXPECT_EQ(rewritten(text, strip_accents), *row["strip_accents"].as_string()) << dump(row);
    EXPECT_EQ(rewritten(text, nmt), *row["nmt"].as_string()) << dump(row);
    std::vector<Span> pieces;
    bert_split(text, pieces);
    EXPECT_EQ(pieces, to_spans(row["split"])) << dump(row);
    ++rows;
  }
  EXPECT_EQ(rows, 160);
}

TEST(BertText, RemembersWhichCharacterEachOneStandsFor) {
  Rewriter out("\x01\u00C9a豈", true);
  bert_normalize({}, out);
  EXPECT_EQ(out.take_text(), "ea 豈 ");
  const Span accented{1, 3}, chinese{4, 7};
  EXPECT_EQ(out.take_origin(),
            (std::vector<Span>{accented, {3, 4}, chinese, chinese, chinese, chinese, chinese}));
}

// One character of each difference between the reference and Unicode 15.
TEST(ReferenceUnicode, FollowsTheReferenceNotUnicode) {
  EXPECT_TRUE(is_bert_removed(0xE000));
  EXPECT_FALSE(is_bert_removed(0x8E2));
  EXPECT_TRUE(is_bert_punctuation('$'));
  EXPECT_TRUE(is_bert_punctuation(0x166D));
  EXPECT_FALSE(is_bert_punctuation(0x2E52));
  EXPECT_TRUE(is_bert_accent(0x301));
  EXPECT_FALSE(is_bert_accent(0x1AC1));
  EXPECT_TRUE(is_combining_mark(0x903));
  EXPECT_FALSE(is_bert_accent(0x903));
  EXPECT_TRUE(has_no_normal_form(0x1AC1, false));
  EXPECT_FALSE(has_no_normal_form(0x301, false));
  EXPECT_FALSE(has_no_normal_form(0x32FF, false));
  EXPECT_TRUE(has_no_normal_form(0x32FF, true));
  std::string lower;
  for (const char32_t c : U"Aß\u0130\u1C89\uA7DC") append_lower_case(lower, c);
  EXPECT_EQ(lower, std::string("aßi\u0307\u1C8A\u019B") + '\0');
}

}  // namespace
}  // namespace plimsoll::text
