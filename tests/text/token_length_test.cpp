// SPDX-License-Identifier: Apache-2.0
// Tokens, rules and scores that only a hostile file has: whatever looks for the longest token at every place
// of a text has a bound on it, so that a small file cannot make encoding quadratic.
#include <gtest/gtest.h>

#include <limits>

#include "tests/text/model_rows.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "text/tokenizer/sentencepiece_model.h"
#include "text/tokenizer/unigram_model.h"
#include "text/tokenizer/vocabulary_trie.h"
#include "text/tokenizer/wordpiece_model.h"

namespace plimsoll::text {
namespace {

std::string letters(std::size_t count) {
  return std::string(count, 'a');
}

TEST(TokenLength, UnigramRefusesLongTokens) {
  const auto code = [](std::size_t bytes) -> std::optional<ErrorCode> {
    const auto vocabulary = *Vocabulary::build({{"a", 0}, {letters(bytes), 1}}, Spelling::kPlain);
    const auto model = UnigramModel::build(vocabulary, {-1, -2}, {});
    return model ? std::nullopt : std::optional(model.error().code);
  };
  EXPECT_EQ(code(kLongestToken), std::nullopt);
  EXPECT_EQ(code(kLongestToken + 1), ErrorCode::kMalformed);
}

TEST(TokenLength, SentencePieceRefusesLongPieces) {
  using Type = SentencePieceFile::PieceType;
  using ModelType = SentencePieceFile::ModelType;
  for (const ModelType kind : {ModelType::kUnigram, ModelType::kBpe})
    for (const Type type : {Type::kNormal, Type::kUserDefined, Type::kControl})
      for (const std::size_t bytes : {kLongestToken, kLongestToken + 1}) {
        const std::string text = letters(bytes);
        SentencePieceFile file;
        file.model_type = kind;
        file.pieces = {{"<unk>", 0, Type::kUnknown}, {"a", -1, Type::kNormal}, {text, -2, type}};
        const auto model = SentencePieceModel::build(file);
        EXPECT_EQ(bool{model}, bytes == kLongestToken);
        EXPECT_TRUE(model || model.error().code == ErrorCode::kMalformed);
      }
}

TEST(TokenLength, WordPieceDoesNotFindLongTokens) {
  const std::string fits = letters(kLongestToken), too_long = letters(kLongestToken + 1);
  const auto vocabulary = *Vocabulary::build({{fits, 0}, {too_long, 1}, {"##a", 2}}, Spelling::kPlain);
  const WordPieceModel model(vocabulary, {.max_characters = 1'000'000});
  EXPECT_EQ(encode(model, fits).first, std::vector<TokenId>{0});
  EXPECT_EQ(encode(model, too_long).first, (std::vector<TokenId>{0, 2}));
}

// A trie whose one node leads back to itself has a rule for every run of one letter.
TEST(TokenLength, CharsmapRulesEnd) {
  std::string blob(4 + 256 * 4, '\0');
  const auto put = [&](std::size_t at, std::uint32_t value) {
    for (std::size_t i = 0; i < 4; ++i) blob[at + i] = static_cast<char>(value >> (8 * i));
  };
  put(0, 256 * 4);
  put(4 + 4 * 'a', std::uint32_t{'a'} << 10 | 1u << 8 | 'a');  // offset, has a leaf, label
  const auto charsmap = Charsmap::parse(blob + "x");
  ASSERT_TRUE(charsmap) << charsmap.error().describe();
  EXPECT_EQ(charsmap->longest(letters(7))->bytes, 7u);
  EXPECT_EQ(charsmap->longest(letters(5000))->bytes, 1024u);
}

// Scored tokens "a", "aa", "aaaa" ... up to 1,024 letters, and one more that is a letter longer.
Json scored_tokens(double last_score) {
  Json tokens = Json::array(), scores = Json::array();
  const auto add = [&](std::size_t length, double score) {
    tokens.push_back(letters(length));
    scores.push_back(score);
  };
  tokens.push_back("<unk>");
  scores.push_back(0.0);
  for (std::size_t length = 1; length <= 1024; length *= 2) add(length, -static_cast<double>(length));
  add(1025, last_score);
  Json metadata = Json::object({{"tokenizer.ggml.model", "llama"}});
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.scores", std::move(scores));
  metadata.set("tokenizer.ggml.unknown_token_id", 0);
  metadata.set("tokenizer.ggml.add_bos_token", false);
  metadata.set("tokenizer.ggml.add_space_prefix", false);
  return metadata;
}

TEST(TokenLength, LongScoredTokensTakePartInNoMerge) {
  auto parts = read_gguf_tokenizer(scored_tokens(-2000));
  ASSERT_TRUE(parts) << parts.error().describe();
  const auto tokenizer = make_tokenizer(std::move(*parts));
  EXPECT_EQ(tokenizer->encode(letters(1024)), std::vector<TokenId>{11});
  EXPECT_EQ(tokenizer->encode(letters(1025)), (std::vector<TokenId>{11, 1}));
}

TEST(TokenLength, AScoreThatIsNoNumberIsRefused) {
  const auto parts = read_gguf_tokenizer(scored_tokens(std::numeric_limits<double>::quiet_NaN()));
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, ErrorCode::kMalformed);
  EXPECT_NE(parts.error().message.find("token 12"), std::string::npos) << parts.error().message;
}

}  // namespace
}  // namespace plimsoll::text
