// SPDX-License-Identifier: Apache-2.0
// What the reference rows cannot show: refusals, hostile files, long pieces, streaming at the end.
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"
#include "text/tokenizer/bpe_model.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "text/tokenizer/tokenizer_json.h"

namespace plimsoll::text {
namespace {

Json small() {
  return *parse_json(R"({"added_tokens":[{"id":9,"content":"<e>","special":true,"normalized":false}],
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},
    "decoder":{"type":"ByteLevel"},
    "model":{"type":"BPE","vocab":{"a":0,"b":1,"aa":2,"aaaa":3,"ab":4,"aab":5},
             "merges":["a a","aa aa","a b","aa b"]}})",
                     "small");
}

std::shared_ptr<const Tokenizer> load(const Json& json) {
  auto parts = read_tokenizer_json(dump(json));
  EXPECT_TRUE(parts) << (parts ? "" : parts.error().describe());
  return parts ? make_tokenizer(std::move(*parts)) : nullptr;
}

Error refusal(const Json& json) {
  auto parts = read_tokenizer_json(dump(json));
  EXPECT_FALSE(parts) << dump(json);
  return parts ? Error{} : parts.error();
}

TEST(Tokenizer, MergesLowestRankFirstThenLeftmost) {
  const auto tokenizer = load(small());
  EXPECT_EQ(tokenizer->encode("aaaab"), (std::vector<TokenId>{3, 1}));
  EXPECT_EQ(tokenizer->encode("aaab"), (std::vector<TokenId>{2, 4}));
  EXPECT_EQ(tokenizer->encode("b<e>a"), (std::vector<TokenId>{1, 9, 0}));
  EXPECT_EQ(tokenizer->encode("xay"), std::vector<TokenId>{0});  // bytes without a token vanish
}

TEST(Tokenizer, LongPiecesGiveWhatShortOnesGive) {
  const auto tokenizer = load(small());
  // One piece of 200,000 bytes: fours of a, then what is left.
  const auto ids = tokenizer->encode(std::string(200'001, 'a'));
  ASSERT_EQ(ids.size(), 50'001u);
  EXPECT_EQ(ids[0], 3);
  EXPECT_EQ(ids[49'999], 3);
  EXPECT_EQ(ids[50'000], 0);
}

TEST(Tokenizer, IgnoreMergesTakesAWholePiece) {
  Json json = small();
  Json model = json["model"];
  model.set("merges", *parse_json(R"(["a b"])", "m"));
  json.set("model", model);
  EXPECT_EQ(load(json)->encode("aab"), (std::vector<TokenId>{0, 4}));
  model.set("ignore_merges", true);
  json.set("model", model);
  EXPECT_EQ(load(json)->encode("aab"), std::vector<TokenId>{5});
}

TEST(Tokenizer, NamesWhatItDoesNotSupport) {
  const auto with = [](const char* member, const char* value) {
    Json json = small();
    json.set(member, *parse_json(value, "v"));
    return json;
  };
  const auto expect = [](const Json& json, ErrorCode code, const std::string& part) {
    const Error error = refusal(json);
    EXPECT_EQ(error.code, code);
    EXPECT_NE(error.message.find(part), std::string::npos) << error.message;
  };
  expect(with("model", R"({"type":"Unigram","vocab":[["a",-1.5]]})"), ErrorCode::kUnsupported, "Unigram");
  expect(with("model", R"({"type":"Martian","vocab":{"a":0}})"), ErrorCode::kUnsupported, "Martian");
  expect(with("model", R"({"type":"BPE","byte_fallback":true})"), ErrorCode::kMalformed, "vocabulary");
  expect(with("normalizer", R"({"type":"Precompiled"})"), ErrorCode::kUnsupported, "Precompiled");
  expect(with("pre_tokenizer", R"({"type":"UnicodeScripts"})"), ErrorCode::kUnsupported, "UnicodeScripts");
  expect(with("decoder", R"({"type":"CTC"})"), ErrorCode::kUnsupported, "CTC");
  expect(with("post_processor", R"({"type":"Nothing"})"), ErrorCode::kUnsupported, "Nothing");
  expect(with("pre_tokenizer", R"({"type":"Split","pattern":{"Regex":"(a"},"behavior":"Isolated"})"),
         ErrorCode::kUnsupported, "regular expression");
  expect(with("model", R"({"type":"BPE","vocab":{"a":0},"merges":["a zz"]})"), ErrorCode::kMalformed,
         "merge number 0 \"a zz\"");
  expect(with("model", R"({"type":"BPE","vocab":{"a":0},"merges":["a b c"]})"), ErrorCode::kMalformed,
         "merge number 0");
  expect(with("model", R"({"type":"BPE","vocab":{"a":2000000000},"merges":[]})"), ErrorCode::kMalformed,
         "out of range");
  expect(with("model", R"({"type":"BPE","vocab":{"a":-1},"merges":[]})"), ErrorCode::kMalformed,
         "out of range");
  expect(with("added_tokens", R"([{"id":-5,"content":"x"}])"), ErrorCode::kMalformed, "added token");
  expect(Json(3), ErrorCode::kMalformed, "no object");
  std::string deep = R"({"type":"NFC"})";
  for (int i = 0; i < 50; ++i) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  expect(with("normalizer", deep.c_str()), ErrorCode::kMalformed, "nested");
}

TEST(Tokenizer, RefusesGgufKindsByName) {
  const auto message = [](const char* json) {
    auto parts = read_gguf_tokenizer(*parse_json(json, "g"));
    return parts ? std::string() : parts.error().message;
  };
  EXPECT_NE(message(R"({"tokenizer.ggml.model":"rwkv"})").find("rwkv"), std::string::npos);
  EXPECT_NE(message(R"({"tokenizer.ggml.model":"gpt2","tokenizer.ggml.pre":"martian"})").find("martian"),
            std::string::npos);
  EXPECT_NE(message("{}").find("no tokenizer"), std::string::npos);
}

TEST(Tokenizer, CatastrophicExpressionsEnd) {
  Json json = small();
  json.set(
      "pre_tokenizer",
      *parse_json(R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"(a*)*(a*)*c"},
             "behavior":"Isolated"},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})",
                  "p"));
  EXPECT_FALSE(load(json)->encode(std::string(30, 'a')).empty());
}

TEST(Tokenizer, StreamsHoldBackAndFlush) {
  // "한" is ED 95 9C; in byte characters í, ķ and ľ.
  Json json = small();
  json.set("model", *parse_json(R"({"type":"BPE","vocab":{"í":0,"ķ":1,"ľ":2,"x":3},"merges":[]})", "m"));
  const auto tokenizer = load(json);
  StreamDecoder decoder(tokenizer, true);
  EXPECT_EQ(decoder.push(0), std::nullopt);
  EXPECT_EQ(decoder.push(1), std::nullopt);
  EXPECT_EQ(decoder.push(2), "한");
  EXPECT_EQ(decoder.push(9), std::nullopt);  // special, skipped
  EXPECT_EQ(decoder.push(0), std::nullopt);
  EXPECT_EQ(decoder.flush(), "\uFFFD");
  EXPECT_EQ(decoder.push(3), "x");
  EXPECT_EQ(decoder.flush(), "");
  EXPECT_EQ(tokenizer->decode(std::vector<TokenId>{0, 3, 77, -4, 9}, true), "\uFFFDx");
  EXPECT_EQ(tokenizer->token_text(9), "<e>");
  EXPECT_EQ(tokenizer->token_text(1), "ķ");
  EXPECT_EQ(tokenizer->token_bytes(1), "\x95");
  EXPECT_EQ(tokenizer->id_of("ķ"), 1);
  EXPECT_EQ(tokenizer->vocab_size(), 10);
}

TEST(Tokenizer, PartsOfCharactersAreNotSearched) {
  Json json = small();
  json.set("decoder", *parse_json(R"({"type":"Sequence","decoders":[{"type":"ByteLevel"},
    {"type":"Replace","pattern":{"Regex":"(?<=b)..|$"},"content":"-"}]})",
                                  "d"));
  json.set("model", *parse_json(R"({"type":"BPE","vocab":{"Ã":0,"a":1},"merges":[]})", "m"));
  EXPECT_EQ(load(json)->token_bytes(0), "\xC3");
}

}  // namespace
}  // namespace plimsoll::text
