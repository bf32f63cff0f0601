// SPDX-License-Identifier: Apache-2.0
// Tool parsers on streams made to cost: long headers end at the same byte however they are cut, work is
// linear.
#include <gtest/gtest.h>

#include "tests/text/output_runs.h"

namespace plimsoll::text {
namespace {

TEST(ToolParserBounds, GivesUpLongHeadersAtTheSameByte) {
  const std::string long_name(3000, 'x');
  for (const std::string_view name : tool_parser_names()) {
    for (const std::string_view start :
         {"<tool_call>", "<tool_call>\n<function=", "<tool_call>\n<function=f><parameter=",
          "<tool_call>\n<function=f><parameter=a>\n<parameter=", "<tool_call>f\n<arg_key>", "[TOOL_CALLS]",
          "[", "<|tool_call_begin|>", "<|channel|>",
          "<minimax:tool_call><invoke name=\"f\"><parameter name="}) {
      OutputParserOptions options;
      options.tool_parser = name;
      run_every_way(options,
                    std::string(start) + long_name + " <tool_call> <parameter=b> {\"a\": 1} </tool_call>");
      run_every_way(options, std::string(start) + long_name + "<tool_call>>[ARGS]{}</function></arg_key>");
    }
  }
}

TEST(ToolParserBounds, TakesWorkLinearInTheText) {
  // Bytes that no state settles, one per push: quadratic work would take minutes, not a second.
  struct {
    const char *parser, *start, *filler;
  } constexpr kLong[] = {
      {"hermes", "<tool_call>", " "},
      {"hermes", "<tool_call>{\"a\": \"", "x"},
      {"hermes", "<tool_call>{\"arguments\": {", "["},
      {"hermes", "", "<"},
      {"llama3_json", "", " "},
      {"llama3_json", "", "["},
      {"llama3_json", "{\"a\": ", "["},
      {"qwen3_coder", "<function=f>", " "},
      {"kimi_k2", "<|tool_call_begin|>f<|tool_call_argument_begin|>{", "<"},
      {"mistral", "[TOOL_CALLS]", " "},
      {"mistral", "[TOOL_CALLS]", "["},
      {"kimi_k2", "<|tool_call_begin|>f<|tool_call_argument_begin|>", " "},
      {"kimi_k2", "<|tool_call_begin|>f<|tool_call_argument_begin|>x", " "},
      {"qwen3_coder", "<tool_call>\n<function=f>\n<parameter=x>", "\n"},
      {"qwen3_coder", "<tool_call>\n<function=f>\n<parameter=x></parameter>", "\n"},
      {"qwen3_coder", "<tool_call>\n<function=f>\n<parameter=x>", "</parameter>"},
      {"glm45", "<tool_call>f\n<arg_key>x</arg_key><arg_value>", "1"},
      {"glm45", "<tool_call>f\n", "-"},
      {"pythonic", "", " "},
      {"pythonic", "[f(a='", "x"},
      {"pythonic", "[f", " "},
      {"openai", "<|channel|>commentary to=functions.f<|message|>1", " "},
      {"openai", "<|channel|>final<|message|>1<|end|>", " "},
  };
  constexpr int kNumPushes = 200000;
  for (const auto& one : kLong) {
    OutputParserOptions options;
    options.tool_parser = one.parser;
    const auto parser = make_output_parser(options);
    ASSERT_TRUE(parser);
    (*parser)->push(one.start);
    for (int push = 0; push < kNumPushes; ++push) (*parser)->push(one.filler);
    (*parser)->finish();
  }
}

}  // namespace
}  // namespace plimsoll::text
