// SPDX-License-Identifier: Apache-2.0
// WordPiece against the reference's ids and offsets, and words that no row has.
#include "text/tokenizer/wordpiece_model.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/testing/golden.h"
#include "tests/text/model_rows.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

TEST(WordPieceModel, GivesTheReferencesIdsAndOffsets) {
  std::unique_ptr<WordPieceModel> model;
  int models = 0, pieces = 0;
  for (const Json& row : read_rows(testing::data_path("text/wordpiece.jsonl"))) {
    if (*row["kind"].as_string() == "model") {
      model = std::make_unique<WordPieceModel>(
          to_vocabulary(row["tokens"]),
          WordPieceModel::Options{0, *row["prefix"].as_string(),
                                  static_cast<std::size_t>(*row["max_characters"].as_integer())});
      ++models;
      continue;
    }
    ++pieces;
    EXPECT_EQ(encode(*model, *row["text"].as_string()), Encoded(to_ids(row["ids"]), to_spans(row["spans"])))
        << dump(row);
  }
  EXPECT_EQ(models, 8);
  EXPECT_EQ(pieces, 160);
}

TEST(WordPieceModel, AWordWithoutTokensVanishesWhenNothingIsUnknown) {
  const auto vocabulary = to_vocabulary(*parse_json(R"(["a","##b"])", "tokens"));
  const WordPieceModel model(vocabulary, {});
  EXPECT_EQ(encode(model, "abb"), Encoded({0, 1, 1}, {{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(encode(model, "abx"), Encoded());
  EXPECT_EQ(encode(model, ""), Encoded());
}

TEST(WordPieceModel, ATokenNeverEndsInsideACharacter) {
  const auto vocabulary =
      *Vocabulary::build({{"\xEA", 0}, {"a", 1}, {"##\xEA\xB0", 2}, {"##b", 3}}, Spelling::kPlain);
  const WordPieceModel model(vocabulary, {.unknown_id = 9});
  EXPECT_EQ(encode(model, "가").first, std::vector<TokenId>{9});
  EXPECT_EQ(encode(model, "a가b").first, std::vector<TokenId>{9});
  EXPECT_EQ(encode(model, "ab").first, (std::vector<TokenId>{1, 3}));
}

TEST(WordPieceModel, LongWordsTakeLinearTime) {
  const auto vocabulary = to_vocabulary(*parse_json(R"(["aa","##aa","##a"])", "tokens"));
  const WordPieceModel model(vocabulary, {.max_characters = 1'000'000});
  EXPECT_EQ(encode(model, std::string(600'001, 'a')).first.size(), 300'001u);
}

}  // namespace
}  // namespace plimsoll::text
