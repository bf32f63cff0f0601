// SPDX-License-Identifier: Apache-2.0
// Reasoning told from content, and the two stages together.
#include <gtest/gtest.h>

#include "tests/testing/golden.h"
#include "tests/text/output_runs.h"
#include "text/text.h"

namespace plimsoll::text {
namespace {

struct Case {
  const char* title;
  const char* reasoning;
  const char* tool;
  ReasoningStart start;
  std::string text;
  ParsedOutput expected;
};

constexpr auto kByParser = ReasoningStart::kByParser;
constexpr auto kOpen = ReasoningStart::kOpen;
constexpr auto kClosed = ReasoningStart::kClosed;

void expect(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    SCOPED_TRACE(std::string(one.reasoning) + ": " + one.title);
    OutputParserOptions options;
    options.reasoning_parser = one.reasoning;
    options.tool_parser = one.tool;
    options.reasoning_start = one.start;
    run_every_way(options, one.text, one.expected);
  }
}

TEST(ReasoningParser, FindsWhereReasoningEnds) {
  expect({
      {"tagged",
       "deepseek_r1",
       "",
       kByParser,
       "<think>\na < b\n</think>\n\nYes",
       {"\na < b\n", "\n\nYes", {}}},
      {"no start tag", "deepseek_r1", "", kByParser, "a</think>Yes</think>", {"a", "Yes</think>", {}}},
      {"cut", "deepseek_r1", "", kByParser, "a</thi", {"a</thi", "", {}}},
      {"in the prompt, and again", "qwen3", "", kOpen, " <think>a</think>b", {"a", "b", {}}},
      {"switched off", "qwen3", "", kClosed, "Yes <think>", {"", "Yes <think>", {}}},
      {"closed once more", "qwen3", "", kClosed, "\n</think>\n\nYes", {"", "\n\nYes", {}}},
      {"an empty pair though switched off", "qwen3", "", kClosed, "\n<think>\n</think>y", {"", "y", {}}},
      {"a start tag though switched off", "qwen3", "", kClosed, "<think> </b>", {"", "<think> </b>", {}}},
      {"cut in a pair", "qwen3", "", kClosed, "<think>\n</thi", {"", "<think>\n</thi", {}}},
      {"tags twice", "deepseek_r1", "", kByParser, "<think>\n<think>a</think>\n</think>b", {"a", "b", {}}},
      {"tags twice", "mistral", "", kByParser, "[THINK][THINK]a[/THINK][/THINK]b", {"a", "b", {}}},
      {"an end tag in the content", "qwen3", "", kByParser, "a</think>b</think>", {"a", "b</think>", {}}},
      {"blanks", "qwen3", "", kByParser, "\n\n", {"\n\n", "", {}}},
      {"absent means content", "mistral", "", kByParser, "Yes [/THINK]", {"", "Yes [/THINK]", {}}},
      {"tagged after text", "mistral", "", kByParser, "So [THINK]a[/THINK]b", {"a", "So b", {}}},
      {"only the prompt opens it", "deepseek_v3", "", kByParser, "a</think>b", {"", "a</think>b", {}}},
      {"the prompt opened it", "deepseek_v3", "", kOpen, "a</think>b", {"a", "b", {}}},
      {"kept in the content",
       "minimax_m2_append_think",
       "",
       kByParser,
       "a</think>b",
       {"", "<think>a</think>b", {}}},
      {"own tags", "seed_oss", "", kByParser, "<seed:think>a</seed:think>b", {"a", "b", {}}},
      {"harmony, calls not read",
       "openai_gptoss",
       "",
       kByParser,
       "<|channel|>commentary to=functions.f<|message|>{}<|call|>",
       {"", "{}", {}}},
      {"harmony",
       "openai_gptoss",
       "",
       kByParser,
       "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>"
       "final<|message|>b",
       {"a", "b", {}}},
  });
}

TEST(ReasoningParser, HandsTheRestToTheToolParser) {
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)";
  const std::vector<ParsedCall> parsed = {{"f", R"({"a": 1})"}};
  expect({
      {"reasoning, content, call",
       "qwen3",
       "hermes",
       kByParser,
       "<think>x</think>\n\nSo\n" + call,
       {"x", "\n\nSo\n", parsed}},
      {"reasoning, call",
       "qwen3",
       "hermes",
       kByParser,
       "<think>x</think>\n\n" + call + "\n",
       {"x", "", parsed}},
      {"a call within the reasoning", "qwen3", "hermes", kByParser, "x\n" + call, {"x\n", "", parsed}},
      {"a mention",
       "qwen3",
       "hermes",
       kByParser,
       "I need <tool_call> \n tags </think>" + call,
       {"I need <tool_call> \n tags ", "", parsed}},
      {"no tool parser", "qwen3", "", kByParser, "x" + call, {"x" + call, "", {}}},
      {"a call in the reasoning is none",
       "deepseek_r1",
       "hermes",
       kByParser,
       call + "</think>y",
       {call, "y", {}}},
      {"a call quoted without its members",
       "qwen3",
       "hermes",
       kByParser,
       "<think>say <tool_call>{ ...}</tool_call> ok</think>x",
       {"say <tool_call>{ ...}</tool_call> ok", "x", {}}},
      {"a call, then the end tag",
       "qwen3",
       "hermes",
       kByParser,
       "<think>x" + call + "\n</think>\ny</think>",
       {"x", "y</think>", parsed}},
      {"an end tag in a call's arguments",
       "qwen3",
       "hermes",
       kByParser,
       "x<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"</think>\"}}</tool_call></thi",
       {"x", "</thi", {{"f", R"({"a": "</think>"})"}}}},
      {"glm, a mention",
       "glm45",
       "glm45",
       kByParser,
       "<think>I use <tool_call> now, <tool_call></think>y",
       {"I use <tool_call> now, <tool_call>", "y", {}}},
      {"glm, mentions with a name",
       "glm45",
       "glm45",
       kByParser,
       "<think>a <tool_call>f g</tool_call> <tool_call>f <tool_call>f</think>y",
       {"a <tool_call>f g</tool_call> <tool_call>f <tool_call>f", "y", {}}},
      {"kimi, a mention",
       "kimi_k2",
       "kimi_k2",
       kByParser,
       "<think>x <|tool_calls_section_begin|> so</think>y",
       {"x ", "<|tool_calls_section_begin|> soy", {}}},
      {"glm", "glm45", "glm45", kOpen, "x<tool_call>f\n</tool_call>", {"x", "", {{"f", "{}"}}}},
      {"kimi",
       "kimi_k2",
       "kimi_k2",
       kByParser,
       "<think>x<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}"
       "<|tool_call_end|><|tool_calls_section_end|>",
       {"x", "", {{"f", "{}", "functions.f:0"}}}},
      {"mistral",
       "mistral",
       "mistral",
       kByParser,
       "[THINK]x[/THINK]y[TOOL_CALLS]f{}",
       {"x", "y", {{"f", "{}"}}}},
  });
}

TEST(ReasoningParser, ReadsItsStartOffThePrompt) {
  EXPECT_EQ(reasoning_start_of("qwen3", "<|im_start|>assistant\n<think>\n"), kOpen);
  EXPECT_EQ(reasoning_start_of("qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n"), kClosed);
  EXPECT_EQ(reasoning_start_of("qwen3", "<think>a</think>b<|im_end|>\n<|im_start|>assistant\n"), kByParser);
  EXPECT_EQ(reasoning_start_of("seed_oss", "<seed:think>"), kOpen);
  EXPECT_EQ(reasoning_start_of("", "<think>"), kByParser);
}

TEST(OutputParser, SaysWhichNamesItKnows) {
  OutputParserOptions options;
  options.tool_parser = "hermez";
  const auto unknown = make_output_parser(options);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_NE(unknown.error().fix.find("hermes"), std::string::npos);
  options.tool_parser = "";
  options.reasoning_parser = "qwen4";
  EXPECT_FALSE(make_output_parser(options));
  options.reasoning_parser = "qwen3";
  options.tool_parser = "openai";
  EXPECT_FALSE(make_output_parser(options));
}

TEST(OutputParser, StreamsAsEarlyAsItCan) {
  OutputParserOptions options;
  options.tool_parser = "hermes";
  auto parser = *make_output_parser(options);
  EXPECT_FALSE(parser->has_tool_calls());
  EXPECT_EQ(parser->push("Hi <").content, "Hi ");
  EXPECT_EQ(parser->push("b").content, "<b");
  EXPECT_TRUE(parser->push("<tool_call>{\"name\": \"f").empty());
  auto delta = parser->push("\", ");
  ASSERT_EQ(delta.tool_calls.size(), 1U);
  EXPECT_EQ(delta.tool_calls[0].name, "f");
  EXPECT_TRUE(parser->has_tool_calls());
  EXPECT_EQ(parser->push("\"arguments\": {\"a\": \"x").tool_calls.at(0).arguments, "{\"a\": \"x");
  EXPECT_EQ(parser->push("yz").tool_calls.at(0).arguments, "yz");

  options.tool_parser = "qwen3_coder";
  options.tools = *parse_json(
      R"([{"function":{"name":"f","parameters":{"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}}}])",
      "tools");
  parser = *make_output_parser(options);
  EXPECT_EQ(parser->push("<tool_call>\n<function=f>").tool_calls.at(0).name, "f");
  EXPECT_EQ(parser->push("<parameter=a>\nlong te").tool_calls.at(0).arguments, "{\"a\": \"long te");
  EXPECT_EQ(parser->push("xt\n").tool_calls.at(0).arguments, "xt");
  EXPECT_TRUE(parser->push("</parameter><parameter=b>1").tool_calls.at(0).arguments == "\"");
  EXPECT_EQ(parser->push("2</parameter></function>").tool_calls.at(0).arguments, ", \"b\": 12}");
}

TEST(OutputParser, StreamsJsonThatIsNoCall) {
  OutputParserOptions options;
  options.tool_parser = "llama3_json";
  auto parser = *make_output_parser(options);
  EXPECT_TRUE(parser->push("{\"title\"").empty());
  EXPECT_EQ(parser->push(": \"x").content, "{\"title\": \"x");
  EXPECT_EQ(parser->push("yz").content, "yz");
  parser = *make_output_parser(options);
  EXPECT_TRUE(parser->push("{\"name\": \"Bob\", ").empty());
  EXPECT_EQ(parser->push("\"age\": ").content, "{\"name\": \"Bob\", \"age\": ");
}

TEST(OutputParser, NeedsSpecialTokensWhereMarkersAreSome) {
  OutputParserOptions options;
  EXPECT_FALSE((*make_output_parser(options))->needs_special_tokens());
  options.tool_parser = "pythonic";
  EXPECT_FALSE((*make_output_parser(options))->needs_special_tokens());
  options.tool_parser = "kimi_k2";
  EXPECT_TRUE((*make_output_parser(options))->needs_special_tokens());
}

TEST(OutputParser, FollowsAStreamOfTokens) {
  const auto artifact = artifact::open(testing::golden_path("tokenizers_tiny/bpe_qwen2/tokenizer.json"));
  ASSERT_TRUE(artifact);
  const auto tokenizer = load_tokenizer(**artifact);
  ASSERT_TRUE(tokenizer);
  OutputParserOptions options;
  options.reasoning_parser = "qwen3";
  options.tool_parser = "hermes";
  const std::string text =
      "<think>\n날씨 <b>?\n</think>\n\nSo 🍲.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": "
      "\"서울 🍲\"}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"g\"}\n</tool_call>";
  std::vector<std::string> pieces;
  StreamDecoder decoder(*tokenizer, false);
  for (const TokenId id : (*tokenizer)->encode(text)) {
    if (auto piece = decoder.push(id)) pieces.push_back(*std::move(piece));
  }
  pieces.push_back(decoder.flush());
  EXPECT_GT(pieces.size(), 20U);
  const ParsedOutput expected = {
      "\n날씨 <b>?\n", "\n\nSo 🍲.\n", {{"f", R"({"city": "서울 🍲"})"}, {"g", "{}"}}};
  EXPECT_EQ(run_pieces(options, {pieces.begin(), pieces.end()}), expected);
  EXPECT_EQ(run_pieces(options, {text}), expected);
}

}  // namespace
}  // namespace plimsoll::text
