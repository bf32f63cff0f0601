// SPDX-License-Identifier: Apache-2.0
// `.model` files against sentencepiece's own ids, offsets and texts: small models always, the published ones
// where PLIMSOLL_GOLDEN and PLIMSOLL_TOKENIZERS (a folder of <family>/tokenizer.model) name them.
#include "text/tokenizer/sentencepiece_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"
#include "tests/text/model_rows.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

std::string read_bytes(const std::string& path) {
  auto bytes = read_file(path);
  EXPECT_TRUE(bytes) << path;
  return bytes ? *bytes : std::string();
}

std::unique_ptr<SentencePieceModel> load(const std::string& bytes) {
  auto file = read_sentencepiece(bytes, "x.model");
  EXPECT_TRUE(file) << file.error().describe();
  auto model = SentencePieceModel::build(*file);
  EXPECT_TRUE(model) << model.error().describe();
  return model ? std::move(*model) : nullptr;
}

class SmallModel : public ::testing::TestWithParam<const char*> {};

TEST_P(SmallModel, GivesTheReferencesIdsOffsetsAndTexts) {
  const std::string path = testing::data_path(std::string("text/sentencepiece/") + GetParam());
  const auto model = load(read_bytes(path + ".model"));
  ASSERT_TRUE(model);
  int texts = 0, decoded = 0;
  for (const Json& row : read_rows(path + ".jsonl")) {
    const std::vector<TokenId> ids = to_ids(row["ids"]);
    EXPECT_EQ(model->decode(ids), *row["decoded"].as_string()) << dump(row);
    ++decoded;
    if (*row["kind"].as_string() != "text") continue;
    ++texts;
    const std::string& text = *row["text"].as_string();
    EXPECT_EQ(encode(*model, text), Encoded(ids, to_spans(row["spans"]))) << dump(row);
    std::vector<TokenId> without_spans;
    model->encode(text, {without_spans});
    EXPECT_EQ(without_spans, ids);
  }
  EXPECT_EQ(texts, 60);
  EXPECT_EQ(decoded, 84);
}

INSTANTIATE_TEST_SUITE_P(SentencePiece, SmallModel,
                         ::testing::Values("bpe_bytes", "bpe_unused", "unigram", "unigram_suffix"));

TEST(SentencePieceModel, PublishedModels) {
  const char* folder = std::getenv("PLIMSOLL_TOKENIZERS");
  if (!folder) GTEST_SKIP() << "PLIMSOLL_TOKENIZERS names no folder of real tokenizers";
  int families = 0;
  for (const char* family : {"mistral_spm_v1", "mistral_spm_v3"}) {
    const std::string rows = testing::golden_path(std::string("tokens/") + family + ".jsonl");
    const std::string path = std::string(folder) + "/" + family + "/tokenizer.model";
    if (!std::filesystem::exists(path) || !std::filesystem::exists(rows)) continue;
    const auto model = load(read_bytes(path));
    ASSERT_TRUE(model);
    ++families;
    int texts = 0;
    for (const Json& row : read_rows(rows)) {
      if (*row["kind"].as_string() != "enc") continue;
      ++texts;
      const std::string& text = *row["text"].as_string();
      const auto ids = to_ids(row["ids_noparse"]);
      EXPECT_EQ(encode(*model, text).first, ids) << dump(row);
      EXPECT_EQ(model->decode(ids), row.contains("decoded") ? *row["decoded"].as_string() : text)
          << dump(row);
    }
    EXPECT_GT(texts, 10);
  }
  EXPECT_GT(families, 0) << "no <family>/tokenizer.model with golden rows in " << folder;
}

// A model of few pieces in the wire format: type 1 normal, 2 unknown, 3 control, 4 user-defined.
struct OwnPiece {
  std::string text;
  float score = 0;
  char type = 1;
};
std::string model_of(const std::vector<OwnPiece>& pieces, const std::string& trainer,
                     const std::string& rest = "") {
  std::string bytes;
  for (const OwnPiece& piece : pieces) {
    std::string one = "\x0A" + std::string(1, static_cast<char>(piece.text.size())) + piece.text + "\x15";
    one.append(reinterpret_cast<const char*>(&piece.score), 4);
    one += std::string("\x18") + piece.type;
    bytes += "\x0A" + std::string(1, static_cast<char>(one.size())) + one;
  }
  bytes += "\x12" + std::string(1, static_cast<char>(trainer.size())) + trainer;
  return bytes + rest;
}
const std::string kBpe("\x18\x02", 2);                        // model_type
const std::string kPlainText("\x1A\x04\x18\x00\x20\x00", 6);  // no dummy prefix, blanks as they are

TEST(SentencePieceModel, LongTextsTakeLinearithmicTime) {
  const auto model = load(model_of({{"<unk>", 0, 2}, {"Z", -9}, {"ZZ", -1}, {"ZZZZ", -2}}, kBpe, kPlainText));
  ASSERT_TRUE(model);
  const auto [ids, spans] = encode(*model, std::string(200'001, 'Z'));
  ASSERT_EQ(ids.size(), 50'001u);
  EXPECT_EQ(ids.front(), 3);
  EXPECT_EQ(ids.back(), 1);
  EXPECT_EQ(spans.back(), (Span{200'000, 200'001}));
}

TEST(SentencePieceModel, BytesThatAreNoTextAreReplaced) {
  const auto model = load(model_of({{"<unk>", 0, 2}, {"a", -1}, {"\xEF\xBF\xBD", -1}}, kBpe, kPlainText));
  ASSERT_TRUE(model);
  EXPECT_EQ(encode(*model,
                   "a\xED\x95"
                   "a"),
            Encoded({1, 2, 2, 1}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
}

TEST(SentencePieceModel, RefusesModelsThatMakeNoSense) {
  const auto refusal = [](const std::string& bytes) {
    const auto file = read_sentencepiece(bytes, "x.model");
    EXPECT_TRUE(file);
    const auto model = SentencePieceModel::build(*file);
    EXPECT_FALSE(model);
    return model ? ErrorCode::kInternal : model.error().code;
  };
  EXPECT_EQ(refusal(model_of({{"a"}}, kBpe)), ErrorCode::kMalformed);                            // no unknown
  EXPECT_EQ(refusal(model_of({{"a", 0, 2}, {"b", 0, 2}}, kBpe)), ErrorCode::kMalformed);         // two
  EXPECT_EQ(refusal(model_of({{"a", 0, 2}, {"b"}, {"b", 0, 3}}, kBpe)), ErrorCode::kMalformed);  // equal
  EXPECT_EQ(refusal(model_of({{"a", 0, 2}}, "\x18\x03")), ErrorCode::kUnsupported);              // words
  EXPECT_EQ(refusal(model_of({{"a", 0, 2}}, kBpe, "\x1A\x03\x12\x01x")), ErrorCode::kMalformed);  // charsmap
}

TEST(SentencePieceFile, RefusesDamage) {
  const std::string sound = model_of({{"<unk>", 0, 2}, {"a", -1}}, kBpe, kPlainText);
  EXPECT_TRUE(looks_like_sentencepiece(sound));
  ASSERT_TRUE(read_sentencepiece(sound, "x.model"));
  const std::string small_bytes(1, '\xFF');
  for (const std::string& bytes :
       {std::string(), small_bytes, sound.substr(0, sound.size() - 1), sound.substr(0, 5),
        std::string("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11), std::string("\x0A\x02\x0A\x05", 4),
        sound + "\x0B",
        std::string("\x0A\x05\x0A\x01"
                    "a\x18\x07",
                    7)})
    EXPECT_FALSE(read_sentencepiece(bytes, "x.model"));
  EXPECT_FALSE(looks_like_sentencepiece("IQ== 0\n"));
  EXPECT_FALSE(looks_like_sentencepiece("{\"a\": 1}"));
}

TEST(SentencePieceFile, FieldsItDoesNotKnowAreSkipped) {
  const std::string more("\x22\x01x\x7D\x00\x00\x00\x00\x79\x00\x00\x00\x00\x00\x00\x00\x00\x78\x05", 19);
  const auto file = read_sentencepiece(model_of({{"<unk>", 0, 2}}, kBpe, more), "x.model");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->pieces.size(), 1u);
}

}  // namespace
}  // namespace plimsoll::text
