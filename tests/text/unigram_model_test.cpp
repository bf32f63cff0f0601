// SPDX-License-Identifier: Apache-2.0
// Unigram against the reference's ids and offsets, and where it has none: refusals, long pieces.
#include "text/tokenizer/unigram_model.h"

#include <gtest/gtest.h>

#include "tests/testing/golden.h"
#include "tests/text/model_rows.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

TEST(UnigramModel, GivesTheReferencesIdsAndOffsets) {
  std::unique_ptr<Vocabulary> vocabulary;
  std::unique_ptr<UnigramModel> model;
  int models = 0, pieces = 0;
  for (const Json& row : read_rows(testing::data_path("text/unigram.jsonl"))) {
    if (*row["kind"].as_string() == "model") {
      vocabulary = std::make_unique<Vocabulary>(to_vocabulary(row["tokens"]));
      std::vector<double> scores;
      for (const Json& score : row["scores"].items()) scores.push_back(*score.as_double());
      auto built = UnigramModel::build(*vocabulary, scores,
                                       {.unknown_id = static_cast<TokenId>(*row["unknown"].as_integer()),
                                        .byte_fallback = *row["byte_fallback"].as_bool()});
      ASSERT_TRUE(built) << built.error().describe();
      model = std::move(*built);
      ++models;
      continue;
    }
    ++pieces;
    EXPECT_EQ(encode(*model, *row["text"].as_string()), Encoded(to_ids(row["ids"]), to_spans(row["spans"])))
        << dump(row);
  }
  EXPECT_EQ(models, 12);
  EXPECT_EQ(pieces, 192);
}

class OwnUnigram : public ::testing::Test {
 protected:
  Vocabulary vocabulary_ = to_vocabulary(*parse_json(R"(["<unk>","a","b","ab","aaaa"])", "tokens"));
  std::vector<double> scores_{0, -1, -1, -1.5, -3};
  std::unique_ptr<UnigramModel> build(UnigramModel::Options options) {
    auto built = UnigramModel::build(vocabulary_, scores_, options);
    EXPECT_TRUE(built);
    return built ? std::move(*built) : nullptr;
  }
};

TEST_F(OwnUnigram, UnknownNeighboursFuseOnlyWhenAsked) {
  EXPECT_EQ(encode(*build({.unknown_id = 0}), "xyab"), Encoded({0, 3}, {{0, 2}, {2, 4}}));
  EXPECT_EQ(encode(*build({.unknown_id = 0, .fuse_unknown = false}), "xyab"),
            Encoded({0, 0, 3}, {{0, 1}, {1, 2}, {2, 4}}));
  EXPECT_EQ(encode(*build({}), "xyab"), Encoded({3}, {{2, 4}}));
}

TEST_F(OwnUnigram, LongPiecesTakeLinearTime) {
  const auto model = build({.unknown_id = 0});
  const auto [ids, spans] = encode(*model, std::string(400'001, 'a'));
  ASSERT_EQ(ids.size(), 100'001u);
  EXPECT_EQ(ids[0], 1);  // of equal sums the tokens that start further left win, so the single one is first
  EXPECT_EQ(ids[1], 4);
  EXPECT_EQ(spans.back(), (Span{399'997, 400'001}));
}

TEST_F(OwnUnigram, RefusesScoresAndUnknownsThatFitNoToken) {
  EXPECT_FALSE(UnigramModel::build(vocabulary_, {0.0, 1.0}, {}));
  EXPECT_FALSE(UnigramModel::build(vocabulary_, scores_, {.unknown_id = 5}));
  EXPECT_FALSE(UnigramModel::build(vocabulary_, scores_, {.unknown_id = -1}));
}

}  // namespace
}  // namespace plimsoll::text
