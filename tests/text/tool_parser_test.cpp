// SPDX-License-Identifier: Apache-2.0
// Each format of tool calls: well written, badly written and cut, in every way of cutting the stream.
#include <gtest/gtest.h>

#include "tests/text/output_runs.h"

namespace plimsoll::text {
namespace {

TEST(ToolParser, Hermes) {
  expect_tool_calls({
      {"no call", "hermes", "Hello <b> there", {"", "Hello <b> there", {}}},
      {"one",
       "hermes",
       "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"서울\"}}\n</tool_call>",
       {"", "", {{"f", R"({"city": "서울"})"}}}},
      {"text around",
       "hermes",
       "Let me "
       "see.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>\n{\"name\":\"g-h.i\", "
       "\"arguments\":{\"a\":[1,{\"b\":2}]}}</tool_call>\n Done.",
       {"", "Let me see.\nDone.", {{"f", "{}"}, {"g-h.i", R"({"a":[1,{"b":2}]})"}}}},
      {"two on one line",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{}}</tool_call><tool_call>{"name":"g","arguments":{}}</tool_call>)",
       {"", "", {{"f", "{}"}, {"g", "{}"}}}},
      {"arguments first",
       "hermes",
       R"(<tool_call>{"arguments": {"a": "}"}, "name": "f"}</tool_call>)",
       {"", "", {{"f", R"({"a": "}"})"}}}},
      {"marker and braces in a string",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"a":"</tool_call> } { \" \\"}}</tool_call>)",
       {"", "", {{"f", R"({"a":"</tool_call> } { \" \\"})"}}}},
      {"escaped name, other members",
       "hermes",
       R"(<tool_call>{"id": 7, "x": {"name": "no"}, "name": "\u00e9t\u00e9", "arguments": {"k": "\ud83c\udf72"}}</tool_call>)",
       {"", "", {{"été", R"({"k": "\ud83c\udf72"})"}}}},
      {"arguments as text",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":"{\"a\": 1}"}</tool_call>)",
       {"", "", {{"f", R"({"a": 1})"}}}},
      {"no arguments", "hermes", R"(<tool_call>{"name":"f"}</tool_call>)", {"", "", {{"f", "{}"}}}},
      {"null arguments",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":null}</tool_call>)",
       {"", "", {{"f", "{}"}}}},
      {"a brace too many",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"a":1}}}</tool_call> ok)",
       {"", "ok", {{"f", R"({"a":1})"}}}},
      {"a brace too few",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"a":1}</tool_call> ok)",
       {"", "ok", {{"f", R"({"a":1})"}}}},
      {"inner braces too few, then a call",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"x":[1</tool_call> <tool_call>{"name":"g"}</tool_call> ok)",
       {"", "ok", {{"f", R"({"x":[1)"}, {"g", "{}"}}}},
      {"braces too few before an unknown name",
       "hermes",
       R"(<tool_call>{"arguments":{"x":1</tool_call> ok)",
       {"", R"(<tool_call>{"arguments":{"x":1</tool_call> ok)", {}}},
      {"cut in what may be a marker",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"x":1</tool_c)",
       {"", "", {{"f", R"({"x":1</tool_c)"}}}},
      {"no end marker",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"a":1}})",
       {"", "", {{"f", R"({"a":1})"}}}},
      {"cut in the arguments",
       "hermes",
       R"(<tool_call>{"name":"f","arguments":{"a":"Par)",
       {"", "", {{"f", R"({"a":"Par)"}}}},
      {"cut before the name", "hermes", R"(ok <tool_call>{"na)", {"", R"(ok <tool_call>{"na)", {}}},
      {"cut in the marker", "hermes", "ok <tool_ca", {"", "ok <tool_ca", {}}},
      {"no JSON", "hermes", "Use <tool_call> so.</tool_call>", {"", "Use <tool_call> so.</tool_call>", {}}},
      {"no name",
       "hermes",
       "<tool_call>{\"a\": 1}</tool_call>",
       {"", "<tool_call>{\"a\": 1}</tool_call>", {}}},
      {"blanks only", "hermes", "\n\n", {"", "\n\n", {}}},
      {"blanks before a call",
       "hermes",
       "\n\n<tool_call>{\"name\":\"f\"}</tool_call>\n",
       {"", "", {{"f", "{}"}}}},
      {"longcat",
       "longcat",
       R"(<longcat_tool_call>{"name":"f","arguments":{}}</longcat_tool_call>)",
       {"", "", {{"f", "{}"}}}},
      {"a list",
       "jamba",
       R"(<tool_calls>[{"name":"f","arguments":{}}, {"name":"g","arguments":{"a":1}}]</tool_calls>)",
       {"", "", {{"f", "{}"}, {"g", R"({"a":1})"}}}},
      {"phi4",
       "phi4_mini_json",
       R"(functools[{"name":"f","arguments":{"a":1}}])",
       {"", "", {{"f", R"({"a":1})"}}}},
  });
}

TEST(ToolParser, LlamaJson) {
  expect_tool_calls({
      {"bare",
       "llama3_json",
       R"({"name": "f", "parameters": {"city": "Oslo"}})",
       {"", "", {{"f", R"({"city": "Oslo"})"}}}},
      {"tag and two",
       "llama3_json",
       R"(<|python_tag|>{"type": "function", "name": "f", "parameters": {}}; {"name": "g", "arguments": {"a": 1}})",
       {"", "", {{"f", "{}"}, {"g", R"({"a": 1})"}}}},
      {"content that is JSON",
       "llama3_json",
       R"({"name": "Bob", "age": 3} is it)",
       {"", R"({"name": "Bob", "age": 3} is it)", {}}},
      {"JSON within content",
       "llama3_json",
       R"(So: {"name": "f", "parameters": {}} Well {"name": "Bob"}, {"names": 1})",
       {"", R"(So: Well {"name": "Bob"}, {"names": 1})", {{"f", "{}"}}}},
      {"JSON that holds what reads like a call",
       "llama3_json",
       R"({"items": [{"name": "f", "parameters": {}}], "a": "}"} {"name": "g", "parameters": {}})",
       {"", R"({"items": [{"name": "f", "parameters": {}}], "a": "}"} )", {{"g", "{}"}}}},
      {"a list of JSON",
       "llama3_json",
       R"([{"a": {"b": 1}}, {"name": 5, "x": 1}] x)",
       {"", R"([{"a": {"b": 1}}, {"name": 5, "x": 1}] x)", {}}},
      {"JSON that is broken, then a tag",
       "llama3_json",
       R"({"a": {"b":<|python_tag|>{"b": {<|python_tag|>{"id": 1, "x": 2, "name": "f", "parameters": {}})",
       {"", R"({"a": {"b":{"b": {)", {{"f", "{}"}}}},
      {"cut JSON", "llama3_json", R"({"a": 1<|pyth)", {"", R"({"a": 1<|pyth)", {}}},
      {"content with a bracket", "llama3_json", "[1] {x}", {"", "[1] {x}", {}}},
      {"text, tag, call, text",
       "llama3_json",
       "See.<|python_tag|>{\"name\": \"f\", \"parameters\": {}}\nThen",
       {"", "See.Then", {{"f", "{}"}}}},
      {"llama 4's tags",
       "llama4_json",
       R"(<|python_start|>{"name": "f", "parameters": {}}<|python_end|>)",
       {"", "", {{"f", "{}"}}}},
      {"a built-in tool",
       "llama3_json",
       R"x(<|python_tag|>brave_search.call(query="x"))x",
       {"", R"x(brave_search.call(query="x"))x", {}}},
  });
}

TEST(ToolParser, Pythonic) {
  expect_tool_calls({
      {"two",
       "pythonic",
       R"x([f(city='San "F"', days=3, deep=True, x=None), g()])x",
       {"", "", {{"f", R"({"city": "San \"F\"", "days": 3, "deep": true, "x": null})"}, {"g", "{}"}}}},
      {"nested",
       "pythonic",
       "[f(opts={'a': [1, 2.5, (3,)], 'b,)': '\\n'}, s=\"it's ]\")]",
       {"", "", {{"f", R"x({"opts": {"a": [1, 2.5, [3]], "b,)": "\n"}, "s": "it's ]"})x"}}}},
      {"names",
       "pythonic",
       "[a.b_c-d(x=1),\n  e(y=-2,)]",
       {"", "", {{"a.b_c-d", R"({"x": 1})"}, {"e", R"({"y": -2})"}}}},
      {"blanks before a bracket",
       "pythonic",
       "[f (a=1), g\n()]",
       {"", "", {{"f", R"({"a": 1})"}, {"g", "{}"}}}},
      {"prose in brackets", "pythonic", "[see f(1)] there", {"", "[see f(1)] there", {}}},
      {"a positional argument", "pythonic", "[f(1)] there", {"", "[f(1)] there", {}}},
      {"not at the start", "pythonic", "Well: [f(a=1)]", {"", "Well: [f(a=1)]", {}}},
      {"no literal", "pythonic", "[f(a=g(1), b=2)]", {"", "", {{"f", R"x({"a": "g(1)", "b": 2})x"}}}},
      {"cut", "pythonic", "[f(a=1, b='x", {"", "", {{"f", R"({"a": 1)"}}}},
      {"cut early", "pythonic", "[f(a=", {"", "[f(a=", {}}},
      {"unicode",
       "pythonic",
       "[f(a='\\u00e9\\x41\\U0001F372 서울')]",
       {"", "", {{"f", R"({"a": "éA🍲 서울"})"}}}},
      {"llama 4's tags",
       "llama4_pythonic",
       "<|python_start|>[f(a=1)]<|python_end|>",
       {"", "", {{"f", R"({"a": 1})"}}}},
      {"lfm2",
       "lfm2",
       "Hm.<|tool_call_start|>[f(xs=[1], opts={\"deep\": true})]<|tool_call_end|>So.",
       {"", "Hm.So.", {{"f", R"({"xs": [1], "opts": {"deep": true}})"}}}},
      {"olmo3, one per line",
       "olmo3",
       "Hm <function_calls>f(a=1)\ng(b=\"2\")</function_calls> So",
       {"", "Hm So", {{"f", R"({"a": 1})"}, {"g", R"({"b": "2"})"}}}},
  });
}

TEST(ToolParser, Mistral) {
  expect_tool_calls({
      {"a list",
       "mistral",
       R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": "]"}}, {"name": "g", "arguments": {}}])",
       {"", "", {{"f", R"({"a": "]"})"}, {"g", "{}"}}}},
      {"names",
       "mistral",
       R"(Hm[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g{})",
       {"", "Hm", {{"f", R"({"a": 1})"}, {"g", "{}"}}}},
      {"ids and a separator",
       "mistral",
       R"([TOOL_CALLS]f[CALL_ID]abc123XYZ[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{})",
       {"", "", {{"f", R"({"a": 1})", "abc123XYZ"}, {"g", "{}"}}}},
      {"cut",
       "mistral",
       R"([TOOL_CALLS]f{"a": "[TOOL_CALLS]g{)",
       {"", "", {{"f", R"({"a": "[TOOL_CALLS]g{)"}}}},
      {"braces too few",
       "mistral",
       R"([TOOL_CALLS]f[ARGS]{"x":[[1[TOOL_CALLS]g[ARGS]{})",
       {"", "", {{"f", R"({"x":[[1)"}, {"g", "{}"}}}},
      {"braces too few in a list",
       "mistral",
       R"([TOOL_CALLS][{"name":"f","arguments":{"x":1[TOOL_CALLS]g{})",
       {"", "", {{"f", R"({"x":1)"}, {"g", "{}"}}}},
      {"nothing behind the separator", "mistral", "[TOOL_CALLS]f[ARGS]", {"", "", {{"f", "{}"}}}},
      {"cut after a bracket", "mistral", "[TOOL_CALLS]f[ARGS] [", {"", "", {{"f", "["}}}},
      {"cut in the name", "mistral", "ok[TOOL_CALLS]get", {"", "ok[TOOL_CALLS]get", {}}},
      {"no call", "mistral", "[TOOL_CALLS] are nice", {"", "[TOOL_CALLS] are nice", {}}},
      {"no name", "mistral", R"([TOOL_CALLS][{"a": 1}] x)", {"", R"([TOOL_CALLS][{"a": 1}] x)", {}}},
  });
}

TEST(ToolParser, DeepSeek) {
  const std::string begin = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>";
  const std::string next = "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>";
  const std::string end = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>";
  expect_tool_calls({
      {"v3",
       "deepseek_v3",
       "Hm." + begin + "function<｜tool▁sep｜>f\n```json\n{\"a\": \"```\"}\n```" + next +
           "function<｜tool▁sep｜>g\n```json\n{}\n```" + end,
       {"", "Hm.", {{"f", R"({"a": "```"})"}, {"g", "{}"}}}},
      {"v3, braces too few",
       "deepseek_v3",
       begin + "function<｜tool▁sep｜>f\n```json\n{\"a\": 1\n```" + next +
           "function<｜tool▁sep｜>g\n```json\n{}\n```" + end + "So",
       {"", "So", {{"f", "{\"a\": 1\n"}, {"g", "{}"}}}},
      {"v3, an empty fence",
       "deepseek_v3",
       begin + "function<｜tool▁sep｜>f\n```json\n\n```" + end,
       {"", "", {{"f", "{}"}}}},
      {"v3, no JSON",
       "deepseek_v3",
       begin + "function<｜tool▁sep｜>f\n```json\nno json\n```" + end + "So",
       {"", "So", {{"f", "no json"}}}},
      {"v31, braces too few",
       "deepseek_v31",
       begin + "f<｜tool▁sep｜>{\"x\": [1}" + next + "g<｜tool▁sep｜>{}" + end + "So",
       {"", "So", {{"f", "{\"x\": [1}"}, {"g", "{}"}}}},
      {"v31",
       "deepseek_v31",
       begin + "f<｜tool▁sep｜>{\"a\": 1}" + next + "g<｜tool▁sep｜>{}" + end + " So",
       {"", "So", {{"f", R"({"a": 1})"}, {"g", "{}"}}}},
      {"v31, no arguments", "deepseek_v31", begin + "f<｜tool▁sep｜>" + end, {"", "", {{"f", "{}"}}}},
      {"v31, no JSON", "deepseek_v31", begin + "f<｜tool▁sep｜>a b \n" + end, {"", "", {{"f", "a b"}}}},
      {"v31, cut", "deepseek_v31", begin + "f<｜tool▁sep｜>{\"a\": 1", {"", "", {{"f", R"({"a": 1)"}}}},
      {"v31, cut name", "deepseek_v31", "x" + begin + "f<｜tool", {"", "x" + begin + "f<｜tool", {}}},
      {"v31, empty section",
       "deepseek_v31",
       "<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜>",
       {"", "<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜>", {}}},
      {"v32",
       "deepseek_v32",
       "Hm.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter "
       "name=\"city\" "
       "string=\"true\">12\n</｜DSML｜parameter>\n<｜DSML｜parameter name=\"xs\" "
       "string=\"false\">[1, "
       "2.5]</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke "
       "name=\"g\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
       {"", "Hm.\n\n", {{"f", R"({"city": "12\n", "xs": [1, 2.5]})"}, {"g", "{}"}}}},
  });
}

TEST(ToolParser, KimiK2) {
  const std::string begin = "<|tool_calls_section_begin|><|tool_call_begin|>";
  const std::string end = "<|tool_call_end|><|tool_calls_section_end|>";
  expect_tool_calls({
      {"two",
       "kimi_k2",
       "Hm." + begin +
           "functions.a.b:0<|tool_call_argument_begin|>{\"a\": "
           "\"<|tool_call_end|>\"}<|tool_call_end|>" +
           "<|tool_call_begin|>g:1 <|tool_call_argument_begin|> {} " + end + "So",
       {"", "Hm.So", {{"a.b", R"({"a": "<|tool_call_end|>"})", "functions.a.b:0"}, {"g", "{}", "g:1"}}}},
      {"braces too few",
       "kimi_k2",
       begin +
           "functions.f:0<|tool_call_argument_begin|>{\"x\": 1<|tool_call_end|><|tool_call_begin|>"
           "functions.g:1<|tool_call_argument_begin|>{}" +
           end + "So",
       {"", "So", {{"f", "{\"x\": 1", "functions.f:0"}, {"g", "{}", "functions.g:1"}}}},
      {"no section",
       "kimi_k2",
       "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
       {"", "", {{"f", "{}", "functions.f:0"}}}},
      {"no arguments", "kimi_k2", begin + "functions.f:0" + end, {"", "", {{"f", "{}", "functions.f:0"}}}},
      {"no index", "kimi_k2", begin + "f<|tool_call_argument_begin|>{}" + end, {"", "", {{"f", "{}"}}}},
  });
}

TEST(ToolParser, Harmony) {
  expect_tool_calls({
      {"analysis, call",
       "openai",
       "<|channel|>analysis<|message|>Hm <b>.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f "
       "<|constrain|>json<|message|>\n{\"a\": 1} \n<|call|>",
       {"Hm <b>.", "", {{"f", R"({"a": 1})"}}}},
      {"recipient before the channel, two calls, preamble",
       "openai",
       "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant "
       "to=functions.a-b.c<|channel|>commentary "
       "json<|message|>{}<|call|><|start|>assistant<|channel|>commentary "
       "to=functions.g<|message|><|call|>",
       {"", "I look.", {{"a-b.c", "{}"}, {"g", "{}"}}}},
      {"final", "openai", "<|channel|>final<|message|>It is < 3.<|return|>", {"", "It is < 3.", {}}},
      {"channel without start",
       "openai",
       "<|channel|>analysis<|message|>a<|end|><|channel|>final<|message|>b",
       {"a", "b", {}}},
      {"built-in tool",
       "openai",
       "<|channel|>analysis to=browser.search code<|message|>{\"q\": 1}<|call|>",
       {"{\"q\": 1}", "", {}}},
      {"no tool's name",
       "openai",
       "<|channel|>commentary to=functions.fx=1{\"name\":<|message|>{}<|call|>",
       {"", "{}", {}}},
      {"no header", "openai", "Just text", {"", "Just text", {}}},
      {"cut", "openai", "<|channel|>commentary to=functions.f<|message|>{\"a", {"", "", {{"f", "{\"a"}}}},
      {"text and blanks between messages",
       "openai",
       "<|channel|>final<|message|>a<|end|> \n x y<|start|>assistant<|channel|>"
       "final<|message|>b",
       {"", "ax yb", {}}},
      {"cut header", "openai", "<|channel|>final<|message|>a<|end|><|start|>assistant<|chan", {"", "a", {}}},
  });
}

}  // namespace
}  // namespace plimsoll::text
