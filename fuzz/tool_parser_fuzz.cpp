// SPDX-License-Identifier: Apache-2.0
// Any text as a model's answer, through every output parser: whole and in cuts that the input chooses, which
// must agree. First byte: the cuts; second: the parser; the rest is the answer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/parsers/output_parser.h"

namespace {

using plimsoll::text::OutputDelta;

void add(const OutputDelta& delta, std::string& all) {
  // Content and reasoning are told apart by their own texts; a call's deltas by its index.
  for (const auto& call : delta.tool_calls) {
    if (call.name)
      all += "\x01" + std::to_string(call.index) + *call.name + "\x02" + call.id.value_or("") + "\x03";
    all += call.arguments;
  }
}

std::string run(const plimsoll::text::OutputParserOptions& options, std::string_view answer,
                std::size_t step) {
  const auto parser = plimsoll::text::make_output_parser(options);
  if (!parser) std::abort();
  std::string reasoning, content, calls;
  const auto take = [&](const OutputDelta& delta) {
    reasoning += delta.reasoning;
    content += delta.content;
    add(delta, calls);
  };
  for (std::size_t at = 0; at < answer.size(); at += step) take((*parser)->push(answer.substr(at, step)));
  take((*parser)->finish());
  if ((*parser)->has_tool_calls() == calls.empty()) std::abort();
  return reasoning + '\0' + content + '\0' + calls;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  static const plimsoll::Json tools = *plimsoll::parse_json(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{
          "s":{"type":"string"},"i":{"type":"integer"},"n":{"type":"number"},"b":{"type":"boolean"},
          "o":{"type":"object"},"x":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}}])",
      "tools");
  const auto tool_names = plimsoll::text::tool_parser_names();
  const auto reasoning_names = plimsoll::text::reasoning_parser_names();
  const std::string_view answer(reinterpret_cast<const char*>(data) + 3, size - 3);
  plimsoll::text::OutputParserOptions options;
  options.tools = tools;
  options.tool_parser = tool_names[data[1] % tool_names.size()];
  // Zero: no reasoning parser. gpt-oss' two go together only.
  const std::size_t reasoning = data[2] % (reasoning_names.size() + 1);
  if (reasoning > 0) options.reasoning_parser = reasoning_names[reasoning - 1];
  if (options.tool_parser == "openai" || options.reasoning_parser == "openai_gptoss") {
    options.tool_parser = "openai";
    options.reasoning_parser = "openai_gptoss";
  }
  const std::string whole = run(options, answer, answer.size() + 1);
  if (run(options, answer, 1) != whole || run(options, answer, 2 + data[0] % 16) != whole) std::abort();
  return 0;
}
