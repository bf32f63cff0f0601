// SPDX-License-Identifier: Apache-2.0
// Formats whose arguments are tagged texts, and the less common relatives of all formats.
#include <gtest/gtest.h>

#include "tests/text/output_runs.h"

namespace plimsoll::text {
namespace {

TEST(ToolParser, QwenCoder) {
  const std::string call =
      "<tool_call>\n<function=f>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n"
      "</parameter>\n</function>\n</tool_call>";
  expect_tool_calls({
      {"typed",
       "qwen3_coder",
       "Hm.\n" + call + "\n" + call,
       {"", "Hm.\n", {{"f", R"({"city": "Oslo", "days": 3})"}, {"f", R"({"city": "Oslo", "days": 3})"}}}},
      {"types",
       "qwen3_xml",
       "<tool_call><function=f><parameter=ratio>-3e10</parameter><parameter=deep>True</"
       "parameter><parameter=xs>[1, "
       "{'a': None}]</parameter><parameter=opts>{\"deep\": "
       "true}</parameter><parameter=note>null</parameter>"
       "<parameter=days>many</parameter><parameter=either>7</parameter><parameter=ref>8</parameter>"
       "<parameter=new>9</parameter><parameter=any>10</parameter></function></tool_call>",
       {"",
        "",
        {{"f",
          R"({"ratio": -3e10, "deep": true, "xs": [1, {"a": null}], "opts": {"deep": true}, "note": null, )"
          R"("days": "many", "either": 7, "ref": 8, "new": "9", "any": "10"})"}}}},
      {"text with markers, quotes and line ends",
       "qwen3_coder",
       "<tool_call>\n<function=f>\n<parameter=city>\n\n a </parameter> <b> \"q\" \\ "
       "\n</function>\n "
       "x\n\n</parameter>\n</function>\n</tool_call>",
       {"", "", {{"f", R"({"city": "\n a </parameter> <b> \"q\" \\ \n</function>\n x\n"})"}}}},
      {"no arguments",
       "qwen3_coder",
       "<tool_call>\n<function=f>\n</function>\n</tool_call>",
       {"", "", {{"f", "{}"}}}},
      {"empty argument",
       "qwen3_coder",
       "<tool_call><function=f><parameter=city>\n</parameter></function></tool_call>",
       {"", "", {{"f", R"({"city": ""})"}}}},
      {"no section",
       "qwen3_coder",
       "So <function=f>\n<parameter=days>\n1\n</parameter>\n</function>\n</tool_call>",
       {"", "So ", {{"f", R"({"days": 1})"}}}},
      {"no parameter end",
       "qwen3_coder",
       "<tool_call><function=f><parameter=days>1</function></tool_call>",
       {"", "", {{"f", R"({"days": 1})"}}}},
      {"no parameter end before the next",
       "qwen3_coder",
       "<tool_call>\n<function=f>\n<parameter=city>\nOslo\n<parameter=days>\n3\n<parameter=deep>\ntrue\n</"
       "parameter>\n"
       "</function>\n</tool_call>",
       {"", "", {{"f", R"({"city": "Oslo", "days": 3, "deep": true})"}}}},
      {"a parameter tag that is text",
       "qwen3_coder",
       "<tool_call>\n<function=f>\n<parameter=city>\nOslo\n<parameter=other>\n "
       "<parameter=days>\n<parameter=city>\n"
       "</parameter>\n</function>\n</tool_call>",
       {"", "", {{"f", R"({"city": "Oslo\n<parameter=other>\n <parameter=days>\n<parameter=city>"})"}}}},
      {"no function end",
       "qwen3_coder",
       "<tool_call><function=f><parameter=days>1</parameter></tool_call>",
       {"", "", {{"f", R"({"days": 1})"}}}},
      {"no ends at all",
       "qwen3_coder",
       "<tool_call><function=f><parameter=days>1</parameter>",
       {"", "", {{"f", R"({"days": 1})"}}}},
      {"cut in a text",
       "qwen3_coder",
       "<tool_call><function=f><parameter=city>Os",
       {"", "", {{"f", R"({"city": "Os)"}}}},
      {"cut in the name",
       "qwen3_coder",
       "a <tool_call>\n<function=ge",
       {"", "a <tool_call>\n<function=ge", {}}},
      {"mentions",
       "qwen3_coder",
       "See <function=f> tags: <function=f>x</function>, <function=f>",
       {"", "See <function=f> tags: <function=f>x</function>, <function=f>", {}}},
      {"no section, no arguments", "qwen3_coder", "<function=f>\n</function>", {"", "", {{"f", "{}"}}}},
      {"not declared",
       "qwen3_coder",
       "<tool_call>\n<function=no>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call> and " + call,
       {"",
        "<tool_call>\n<function=no>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call> and ",
        {{"f", R"({"city": "Oslo", "days": 3})"}}}},
      {"no function", "qwen3_coder", "a <tool_call> b", {"", "a <tool_call> b", {}}},
      {"seed",
       "seed_oss",
       "<seed:tool_call>\n<function=f>\n<parameter=opts>{'deep': True}</parameter>\n</function>\n"
       "</seed:tool_call>",
       {"", "", {{"f", R"({"opts": {"deep": true}})"}}}},
      {"minimax",
       "minimax_m2",
       "Hm.\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"city\"> "
       "Oslo\n</parameter>\n</invoke>\n"
       "<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
       {"", "Hm.\n", {{"f", R"({"city": " Oslo\n"})"}, {"g", "{}"}}}},
  });
}

TEST(ToolParser, Glm) {
  expect_tool_calls({
      {"lines",
       "glm45",
       "Hm.\n<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>7 "
       "</arg_value>\n<arg_key>xs</arg_key>\n<arg_value>[1, "
       "2]</arg_value>\n</tool_call>\n<tool_call>g\n</tool_call>",
       {"", "Hm.\n", {{"f", R"({"city": "7 ", "xs": [1, 2]})"}, {"g", "{}"}}}},
      {"one line",
       "glm47",
       "<tool_call>f<arg_key>city</arg_key><arg_value>a</arg_value> "
       "b</arg_value></tool_call><tool_call>g</tool_call>",
       {"", "", {{"f", R"({"city": "a</arg_value> b"})"}, {"g", "{}"}}}},
      {"a tool that is not declared",
       "glm45",
       "<tool_call>no\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>b",
       {"", "<tool_call>no\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>b", {}}},
      {"an argument that is not declared",
       "glm47",
       "<tool_call>h<arg_key>a</arg_key><arg_value>{'x': "
       "1}</arg_value><arg_key>b</arg_key><arg_value>two "
       "words</arg_value></tool_call>",
       {"", "", {{"h", R"({"a": {"x": 1}, "b": "two words"})"}}}},
      {"a mention",
       "glm45",
       "The <tool_call> tag and <tool_call>{}</tool_call>",
       {"", "The <tool_call> tag and <tool_call>{}</tool_call>", {}}},
      {"cut in a number",
       "glm45",
       "<tool_call>f\n<arg_key>days</arg_key>\n<arg_value>12",
       {"", "", {{"f", R"({"days": 12)"}}}},
      {"stray text",
       "glm45",
       "<tool_call>f\nhm <arg_key>days</arg_key><arg_value>1</arg_value></tool_call>",
       {"", "hm ", {{"f", R"({"days": 1})"}}}},
  });
}

TEST(ToolParser, TakesNamesByTheirFormWhereNoToolsAreDeclared) {
  OutputParserOptions options;
  options.tool_parser = "qwen3_coder";
  const auto parsed = [&](const std::string& name) {
    return run_every_way(options, "<tool_call><function=" + name + "></function></tool_call>").calls.size();
  };
  EXPECT_EQ(parsed("ns:get/the_x-1.b"), 1U);
  EXPECT_EQ(parsed(std::string(64, 'x')), 1U);
  EXPECT_EQ(parsed(std::string(65, 'x')), 0U);
  EXPECT_EQ(parsed("x=1"), 0U);
  EXPECT_EQ(parsed("é"), 0U);
  options.tools = *parse_json(R"([{"function":{"name":"é"}}])", "tools");
  EXPECT_EQ(parsed("é"), 1U);
  EXPECT_EQ(parsed("x"), 0U);
}

TEST(ToolParser, OthersByTheirTemplates) {
  expect_tool_calls({
      {"granite",
       "granite",
       R"(<|tool_call|>[{"name": "f", "arguments": {"a": 1}}])",
       {"", "", {{"f", R"({"a": 1})"}}}},
      {"gigachat3, whose end marker begins another",
       "gigachat3",
       "<|function_call|>{\"name\": \"f\"}x<|message_sep|>\n\nfunction call<|role_sep|>\nno",
       {"", "x\n\nfunction call<|role_sep|>\nno", {{"f", "{}"}}}},
      {"internlm",
       "internlm",
       R"(Hm<|action_start|><|plugin|>{"name": "f", "parameters": {"a": 1}}<|action_end|>)",
       {"", "Hm", {{"f", R"({"a": 1})"}}}},
      {"minicpm5",
       "minicpm5",
       "<function name=\"f\"><param name=\"days\">3</param></function>",
       {"", "", {{"f", R"({"days": 3})"}}}},
      {"a mention of minicpm5's tag",
       "minicpm5",
       "A <function name=\"f\"> tag <param name=\"days\">",
       {"", "A <function name=\"f\"> tag <param name=\"days\">", {}}},
  });
}

}  // namespace
}  // namespace plimsoll::text
