// SPDX-License-Identifier: Apache-2.0
#include "tests/text/output_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

void add(const OutputDelta& delta, ParsedOutput& output) {
  output.reasoning += delta.reasoning;
  output.content += delta.content;
  int previous = -1;
  for (const ToolCallDelta& call : delta.tool_calls) {
    EXPECT_GT(call.index, previous);
    previous = call.index;
    const auto index = static_cast<std::size_t>(call.index);
    // The name comes with the call's first delta and never again.
    EXPECT_EQ(call.name.has_value(), index == output.calls.size());
    if (call.name) output.calls.push_back({*call.name, "", call.id.value_or("")});
    ASSERT_LT(index, output.calls.size());
    EXPECT_EQ(index + 1, output.calls.size()) << "a call goes on after the next has begun";
    output.calls[index].arguments += call.arguments;
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t end = 1;
    while (end < text.size() && text[end] != ' ' && text[end] != '<' && text[end] != '"' && text[end] != '\n')
      ++end;
    pieces.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return pieces;
}

const Json& tools() {
  static const Json parsed = *parse_json(
      R"([{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{
          "city":{"type":"string"},"days":{"type":"integer"},"ratio":{"type":"number"},"deep":{"type":"boolean"},
          "xs":{"type":"array"},"opts":{"type":"object"},"note":{"anyOf":[{"type":"string"},{"type":"null"}]},
          "any":{},"either":{"type":["integer","string"]},"ref":{"$ref":"#/$defs/count"}},
          "$defs":{"count":{"type":"integer"}}}}},
          {"type":"function","function":{"name":"g"}},{"name":"h"},{"name":"a-b.c"}])",
      "tools");
  return parsed;
}

/// Whole characters in give whole characters out.
void expect_whole_characters(const OutputParserOptions& options, std::string_view text,
                             const ParsedOutput& whole) {
  std::vector<std::string_view> characters;
  for (std::string_view rest = text; !rest.empty();) {
    const auto size = static_cast<std::size_t>(decode_utf8(rest).bytes);
    characters.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  const auto parser = *make_output_parser(options);
  for (const std::string_view character : characters) {
    const OutputDelta delta = parser->push(character);
    EXPECT_TRUE(is_valid_utf8(delta.content) && is_valid_utf8(delta.reasoning));
    for (const ToolCallDelta& call : delta.tool_calls) EXPECT_TRUE(is_valid_utf8(call.arguments));
  }
  EXPECT_EQ(run_pieces(options, characters), whole) << "by characters: " << text;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ParsedOutput& output) {
  out << "reasoning {" << output.reasoning << "} content {" << output.content << "}";
  for (const ParsedCall& call : output.calls)
    out << " call " << call.name << " " << call.id << " {" << call.arguments << "}";
  return out;
}

ParsedOutput run_pieces(const OutputParserOptions& options, const std::vector<std::string_view>& pieces) {
  ParsedOutput output;
  const auto parser = make_output_parser(options);
  EXPECT_TRUE(parser) << parser.error().message;
  if (!parser) return output;
  for (const std::string_view piece : pieces) add((*parser)->push(piece), output);
  add((*parser)->finish(), output);
  EXPECT_EQ((*parser)->has_tool_calls(), !output.calls.empty());
  return output;
}

ParsedOutput run_every_way(const OutputParserOptions& options, std::string_view text,
                           const std::optional<ParsedOutput>& expected) {
  const ParsedOutput whole = run_pieces(options, {text});
  EXPECT_EQ(whole, expected.value_or(whole)) << text;
  const auto once = parse_output(options, text);
  EXPECT_TRUE(once && once->content == whole.content && once->tool_calls.size() == whole.calls.size());

  std::vector<std::string_view> bytes;
  for (std::size_t at = 0; at < text.size(); ++at) bytes.push_back(text.substr(at, 1));
  EXPECT_EQ(run_pieces(options, bytes), whole) << "byte by byte: " << text;
  expect_whole_characters(options, text, whole);
  EXPECT_EQ(run_pieces(options, words_of(text)), whole) << "in words: " << text;

  std::mt19937 random(static_cast<unsigned>(text.size()));
  for (int round = 0; round < 8; ++round) {
    std::vector<std::string_view> pieces;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t size = std::min<std::size_t>(random() % 12, text.size() - at);
      pieces.push_back(text.substr(at, size));
      at += size;
    }
    EXPECT_EQ(run_pieces(options, pieces), whole) << "in random cuts: " << text;
  }
  return whole;
}

void expect_tool_calls(const std::vector<ToolCase>& cases) {
  for (const ToolCase& one : cases) {
    SCOPED_TRACE(std::string(one.parser) + ": " + one.title);
    OutputParserOptions options;
    options.tool_parser = one.parser;
    options.tools = tools();
    run_every_way(options, one.text, one.expected);
  }
}

}  // namespace plimsoll::text
