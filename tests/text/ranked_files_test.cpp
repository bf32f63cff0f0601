// SPDX-License-Identifier: Apache-2.0
// tekken.json and tiktoken files: what is read from small ones of our own, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "text/tokenizer/tekken.h"
#include "text/tokenizer/tiktoken_file.h"

namespace plimsoll::text {
namespace {

Json small_tekken() {
  return *parse_json(R"({"config":{"pattern":"a|b","num_vocab_tokens":4,"default_vocab_size":26,
      "default_num_special_tokens":23,"version":"v3"},
    "vocab":[{"rank":0,"token_bytes":"AA==","token_str":"\u0000"},{"rank":1,"token_bytes":"/w==","token_str":null},
             {"rank":2,"token_bytes":"AP8=","token_str":null},{"rank":3,"token_bytes":"AP8A","token_str":null}]})",
                     "tekken.json");
}

std::optional<TokenId> special(const RankedVocabulary& read, const std::string& text) {
  for (const SpecialToken& token : read.specials)
    if (token.text == text) return token.id;
  return std::nullopt;
}

TEST(Tekken, ReadsTokensBehindItsSpecialOnes) {
  auto moved = read_tekken(small_tekken());
  ASSERT_TRUE(moved) << moved.error().describe();
  const RankedVocabulary read = std::move(*moved);
  EXPECT_EQ(read.pattern, "a|b");
  ASSERT_EQ(read.entries.size(), 3u);  // 26 less 23: the fourth is cut off
  EXPECT_EQ(read.entries[2].text, std::string("\0\xFF", 2));
  EXPECT_EQ(read.entries[2].id, 25);
  EXPECT_EQ(read.specials.size(), 23u);
  EXPECT_EQ(special(read, "[INST]"), 3);
  EXPECT_EQ(special(read, "[TOOL_CONTENT]"), 19);
  EXPECT_EQ(special(read, "<SPECIAL_20>"), 20);
  EXPECT_EQ(read.bos, 1);
  EXPECT_EQ(read.eos, 2);
}

TEST(Tekken, ListedSpecialTokensReplaceTheOldOnes) {
  Json file = small_tekken();
  file.set("special_tokens", *parse_json(R"([{"rank":0,"token_str":"<unk>","is_control":true},
                                             {"rank":2,"token_str":"<s>","is_control":true}])",
                                         "specials"));
  const auto read = read_tekken(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bos, 2);
  EXPECT_FALSE(read->eos);
  EXPECT_EQ(special(*read, "<SPECIAL_1>"), 1);
}

TEST(Tekken, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::string& pointer, const Json& value) {
    Json file = small_tekken();
    Json config = file["config"];
    if (pointer.starts_with("config/")) {
      config.set(pointer.substr(7), value);
      file.set("config", config);
    } else {
      file.set(pointer, value);
    }
    const auto read = read_tekken(file);
    EXPECT_FALSE(read) << pointer;
    return read ? std::string() : read.error().where;
  };
  EXPECT_EQ(refused("config/pattern", nullptr), "tekken.json: /config/pattern");
  EXPECT_EQ(refused("config/default_vocab_size", 28), "tekken.json: /config/default_vocab_size");
  EXPECT_EQ(refused("config/default_vocab_size", 22), "tekken.json: /config/default_vocab_size");
  EXPECT_EQ(refused("config/default_num_special_tokens", std::int64_t{1} << 40),
            "tekken.json: /config/default_num_special_tokens");
  EXPECT_EQ(refused("special_tokens", *parse_json(R"([{"rank":23,"token_str":"<s>"}])", "s")),
            "tekken.json: /special_tokens/0");
  for (const char* token : {R"({"rank":1,"token_bytes":"AA=="})", R"({"rank":0,"token_bytes":"A"})",
                            R"({"rank":0,"token_bytes":""})", R"({"rank":0})", "7"})
    EXPECT_TRUE(refused("vocab", Json(Json::Array{*parse_json(token, "t"), {}, {}}))
                    .starts_with("tekken.json: /vocab/0"))
        << token;
}

// A file with the number of tokens that makes it the family's; its tokens are numbers in base 64.
std::string tiktoken_of(int num_tokens) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string file;
  for (int rank = 0; rank < num_tokens; ++rank) {
    for (const int shift : {18, 12, 6, 0}) file += digits[static_cast<std::size_t>(rank >> shift & 63)];
    file += " " + std::to_string(rank) + "\n";
  }
  return file;
}

TEST(Tiktoken, TheNumberOfTokensTellsTheFamily) {
  auto moved = read_tiktoken(tiktoken_of(128000), "tokenizer.model");
  ASSERT_TRUE(moved) << moved.error().describe();
  const RankedVocabulary llama = std::move(*moved);
  EXPECT_EQ(llama.entries[258].text, std::string("\0\1\2", 3));
  EXPECT_EQ(llama.entries[258].id, 258);
  EXPECT_EQ(llama.specials.size(), 256u);
  EXPECT_EQ(llama.bos, 128000);
  EXPECT_EQ(llama.eos, 128001);
  EXPECT_EQ(special(llama, "<|eot_id|>"), 128009);
  EXPECT_EQ(special(llama, "<|reserved_special_token_247|>"), 128255);
  EXPECT_NE(llama.pattern.find("\\p{N}{1,3}"), std::string::npos);
  EXPECT_FALSE(llama.is_normalized_nfc);

  const auto qwen = read_tiktoken(tiktoken_of(151643), "qwen.tiktoken");
  ASSERT_TRUE(qwen);
  EXPECT_EQ(special(*qwen, "<|extra_204|>"), 151850);
  EXPECT_TRUE(qwen->is_normalized_nfc);
  EXPECT_FALSE(qwen->bos);

  // tiktoken takes white space at the end of a text together, Llama 3's own code does not.
  const auto cl100k = read_tiktoken(tiktoken_of(100256), "cl100k_base.tiktoken");
  ASSERT_TRUE(cl100k);
  EXPECT_NE(cl100k->pattern.find("\\s++$"), std::string::npos);
  EXPECT_EQ(llama.pattern.find("\\s++$"), std::string::npos);

  const auto kimi = read_tiktoken(tiktoken_of(163584), "tiktoken.model");
  ASSERT_TRUE(kimi);
  EXPECT_EQ(kimi->specials.size(), 256u);
  for (std::size_t i = 0; i < kimi->specials.size(); ++i)
    EXPECT_EQ(kimi->specials[i].id, 163584 + static_cast<TokenId>(i));
}

TEST(Tiktoken, SaysWhatToDoAboutAnUnknownOne) {
  const auto read = read_tiktoken("AA== 0\r\n\nAQ== 1", "x.tiktoken");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(read.error().message.find("2 tokens"), std::string::npos);
  EXPECT_NE(read.error().fix.find("tokenizer.json"), std::string::npos);
}

TEST(Tiktoken, RefusesLinesThatAreNone) {
  for (const char* line :
       {"AA==", "AA== x", "AA== -1", " 0", "!!!! 0", "A 0", "AA== 0 1", "AA== 99999999999999999999"}) {
    const auto read = read_tiktoken(std::string("AA== 0\n") + line + "\n", "x.tiktoken");
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().where, "x.tiktoken: line 2") << line;
    EXPECT_FALSE(looks_like_tiktoken(line)) << line;
  }
  EXPECT_TRUE(looks_like_tiktoken("IQ== 0\nIg== 1\n"));
  EXPECT_FALSE(looks_like_tiktoken(""));
  EXPECT_FALSE(looks_like_tiktoken("\n\x0E\n\x05<unk>"));
}

}  // namespace
}  // namespace plimsoll::text
