// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding by rank against the reference's ids, around the length where the method changes.
#include "text/tokenizer/rank_model.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/testing/golden.h"
#include "tests/text/model_rows.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

TEST(RankModel, GivesTheReferencesIds) {
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<RankModel> model;
  int models = 0, pieces = 0;
  for (const Json& row : read_rows(testing::data_path("text/ranks.jsonl"))) {
    if (*row["kind"].as_string() == "model") {
      Json tokens = Json::array();
      for (const Json& hex : row["tokens"].items()) tokens.push_back(from_hex(*hex.as_string()));
      vocabulary = std::make_unique<Vocabulary>(to_vocabulary(tokens, Spelling::kBytes));
      model = std::make_unique<RankModel>(*vocabulary);
      ++models;
      continue;
    }
    ++pieces;
    const std::string piece = from_hex(*row["hex"].as_string());
    const auto [ids, spans] = encode(*model, piece);
    EXPECT_EQ(ids, to_ids(row["ids"])) << dump(row);
    std::size_t end = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(spans[i].begin, end);
      end = spans[i].end;
      EXPECT_EQ(piece.substr(spans[i].begin, end - spans[i].begin), vocabulary->bytes_of(ids[i]));
    }
    EXPECT_EQ(end, piece.size());
  }
  EXPECT_EQ(models, 6);
  EXPECT_EQ(pieces, 84);
}

TEST(RankModel, BytesWithoutATokenVanishAndWholePiecesComeFirst) {
  // "abc" cannot be reached by joining: "ab" and "bc" are no tokens.
  const auto vocabulary = to_vocabulary(*parse_json(R"(["a","b","c","abc"])", "tokens"), Spelling::kBytes);
  const RankModel model(vocabulary);
  EXPECT_EQ(encode(model, "abc").first, std::vector<TokenId>{3});
  EXPECT_EQ(encode(model, "abcx"), Encoded({0, 1, 2}, {{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(encode(model, ""), Encoded());
}

TEST(RankModel, LongPiecesTakeLinearithmicTime) {
  const auto vocabulary =
      to_vocabulary(*parse_json(R"(["Z","ZZ","ZZZZ","ZZZZZZZZ"])", "tokens"), Spelling::kBytes);
  const auto [ids, spans] = encode(RankModel(vocabulary), std::string(300'001, 'Z'));
  ASSERT_EQ(ids.size(), 37'501u);
  EXPECT_EQ(ids.front(), 3);
  EXPECT_EQ(ids.back(), 0);
  EXPECT_EQ(spans.back(), (Span{300'000, 300'001}));
}

}  // namespace
}  // namespace plimsoll::text
