// SPDX-License-Identifier: Apache-2.0
#include "text/token_lines.h"

#include <gtest/gtest.h>

#include "text/template_renderer.h"
#include "text/tokenizer/tokenizer_json.h"

namespace plimsoll::text {
namespace {

/// Bytes a and b with one merge; <e> is special and stands before every text.
std::shared_ptr<const Tokenizer> small() {
  const Json json = *parse_json(
      R"({"added_tokens":[{"id":9,"content":"<e>","special":true,"normalized":false}],
    "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},
    "post_processor":{"type":"TemplateProcessing",
      "single":[{"SpecialToken":{"id":"<e>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],
      "special_tokens":{"<e>":{"id":"<e>","ids":[9],"tokens":["<e>"]}}},
    "decoder":{"type":"ByteLevel"},
    "model":{"type":"BPE","vocab":{"a":0,"b":1,"aa":2},"merges":["a a"]}})",
      "small");
  auto parts = read_tokenizer_json(dump(json));
  EXPECT_TRUE(parts) << (parts ? "" : parts.error().describe());
  return parts ? make_tokenizer(std::move(*parts)) : nullptr;
}

Json json(const char* text) {
  return *parse_json(text, "test");
}

std::string encode(const char* line, const EncodeOptions& defaults = {}) {
  const auto tokenizer = small();
  const auto work = [&](const Json& object) { return encode_line(*tokenizer, object, defaults); };
  return dump(line_json(answer_line(line, work)));
}

std::string decode(const char* line, bool skip_special = false) {
  const auto tokenizer = small();
  const auto work = [&](const Json& object) { return decode_line(tokenizer, object, skip_special); };
  return dump(line_json(answer_line(line, work)));
}

TEST(TokenLines, EncodeAsTheLineSaysAndElseAsTheFlagsSay) {
  EXPECT_EQ(encode(R"({"text":"aab"})"), R"({"ids":[9,2,1],"pieces":["<e>","aa","b"]})");
  EXPECT_EQ(encode(R"({"text":"aab"})", {false, true}), R"({"ids":[2,1],"pieces":["aa","b"]})");
  EXPECT_EQ(encode(R"({"text":"b","add_special_tokens":true})", {false, true}),
            R"({"ids":[9,1],"pieces":["<e>","b"]})");
  EXPECT_EQ(encode(R"({"hex":"6162","add_special_tokens":false})"), R"({"ids":[0,1],"pieces":["a","b"]})");
}

TEST(TokenLines, AFailedLineSaysWhy) {
  const char* no_hex =
      R"({"error":{"class":"ValueError","message":"hex holds no pairs of hexadecimal digits"}})";
  EXPECT_EQ(encode(R"({"hex":"616"})"), no_hex);
  EXPECT_EQ(encode(R"({"hex":"6g"})"), no_hex);
  EXPECT_EQ(encode(R"({"hex":"+1"})"), no_hex);
  EXPECT_EQ(encode("{}"),
            R"({"error":{"class":"ValueError","message":"the line holds neither text nor hex"}})");
  EXPECT_EQ(encode("[1]"), R"({"error":{"class":"ValueError","message":"the line holds no JSON object"}})");
  EXPECT_NE(encode("{").find("ValueError"), std::string::npos);
  EXPECT_EQ(decode(R"({"ids":1})"),
            R"({"error":{"class":"ValueError","message":"the line holds no array ids"}})");
  for (const char* id : {"-1", "2147483648", "1.5", "\"1\""}) {
    const std::string line = std::string("{\"ids\":[") + id + "]}";
    EXPECT_NE(decode(line.c_str()).find("not a token id"), std::string::npos) << line;
  }
}

TEST(TokenLines, DecodeAtOnceOrAsAStreamGivesIt) {
  EXPECT_EQ(decode(R"({"ids":[9,2,1]})"), R"({"text":"<e>aab"})");
  EXPECT_EQ(decode(R"({"ids":[9,2,1]})", true), R"({"text":"aab"})");
  EXPECT_EQ(decode(R"({"ids":[9,2],"skip_special_tokens":false})", true), R"({"text":"<e>aa"})");
  EXPECT_EQ(decode(R"({"ids":[2,1],"stream":true})"), R"({"chunks":["aa","b"],"flush":"","text":"aab"})");
}

TEST(TokenLines, IdsAreReadHoweverTheyAreSeparated) {
  for (const char* text : {"1,2,3", "[1, 2, 3]", " 1 2\n3\n"})
    EXPECT_EQ(parse_ids(text), json("[1,2,3]")) << text;
  EXPECT_EQ(parse_ids(""), json("[]"));
  const auto refused = parse_ids("1,x2");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("x2"), std::string::npos);
}

TEST(TokenLines, WhatNoWordCausedIsTakenOffTheRoom) {
  const auto tokenizer = small();
  const TokenCount text = count_text(*tokenizer, "aab", {});
  EXPECT_EQ(text.tokens, Tokens(3));
  EXPECT_EQ(text.template_overhead, Tokens(1));  // <e>
  const TokenCount chat = count_chat(*tokenizer, {"<e>baab<e>", {}, true},
                                     json(R"([{"role":"user","content":"aa"},{"content":null}])"));
  EXPECT_EQ(chat.tokens, Tokens(5));
  EXPECT_EQ(chat.template_overhead, Tokens(4));
  EXPECT_EQ(input_room(chat, Tokens(100), Tokens(10)), Tokens(86));
  EXPECT_EQ(input_room(chat, Tokens(10), Tokens(10)), Tokens(0));
}

TEST(TemplateRenderer, TakesTheGivenTextAndTellsItsFaults) {
  TemplateRenderer renderer({nullptr, "{{ bos_token }}{{ messages[0].content }}{{ x }}", ""});
  EXPECT_EQ(dump(line_json(renderer.render(json(R"({"messages":[{"content":"hi"}],"x":1})")))),
            R"({"text":"hi1"})");
  EXPECT_EQ(dump(line_json(renderer.render(json(R"({"messages":[{"content":"yo"}],"bos_token":"<s>"})")))),
            R"({"text":"<s>yo"})");
  TemplateRenderer broken({nullptr, "\n{% if %}", ""});
  const LineAnswer answer = broken.render(json("{}"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().type, "TemplateSyntaxError");
  EXPECT_EQ(line_json(answer).at_pointer("/error/line"), Json(2));
  EXPECT_EQ(line_error(answer.error()).code, ErrorCode::kMalformed);
  TemplateRenderer none({nullptr, std::nullopt, ""});
  ASSERT_FALSE(none.render(json("{}")));
  EXPECT_EQ(none.render(json(R"({"template_name":"rag"})")).error().message,
            "the model has no chat template named rag");
}

TEST(TemplateRenderer, AConversationHasWhatTransformersPasses) {
  EXPECT_EQ(dump(chat_context({.chat = json(R"([{"role":"user"}])"), .tools = {}, .variables = {}})),
            R"({"messages":[{"role":"user"}],"tools":null,"documents":null,"add_generation_prompt":true})");
  EXPECT_EQ(dump(chat_context({.chat = json(R"({"messages":[],"add_generation_prompt":true})"),
                               .tools = json("[1]"),
                               .variables = json(R"({"tools":[2]})"),
                               .add_generation_prompt = false,
                               .continue_final_message = true})),
            R"({"messages":[],"tools":[2],"documents":null,"add_generation_prompt":true,)"
            R"("continue_final_message":true})");
}

}  // namespace
}  // namespace plimsoll::text
