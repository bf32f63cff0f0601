// SPDX-License-Identifier: Apache-2.0
// Running an output parser over one text in several cuts, shared by the tests of the parsers.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "text/parsers/output_parser.h"

namespace plimsoll::text {

struct ParsedCall {
  std::string name;
  std::string arguments;
  std::string id = {};
  bool operator==(const ParsedCall&) const = default;
};

struct ParsedOutput {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  bool operator==(const ParsedOutput&) const = default;
};
std::ostream& operator<<(std::ostream& out, const ParsedOutput& output);

/// The deltas of `pieces` put together as a client does; fails the test where they break the rules of deltas.
ParsedOutput run_pieces(const OutputParserOptions& options, const std::vector<std::string_view>& pieces);

/// `text` whole, byte by byte, by characters, in words, and in random cuts: fails the test unless all give
/// `expected`, or, without one, the same as the whole. Returns the whole's.
ParsedOutput run_every_way(const OutputParserOptions& options, std::string_view text,
                           const std::optional<ParsedOutput>& expected = {});

struct ToolCase {
  const char* title;
  const char* parser;
  std::string text;
  ParsedOutput expected;
};
/// Runs each case every way, with a tool "f" that has parameters of all types.
void expect_tool_calls(const std::vector<ToolCase>& cases);

}  // namespace plimsoll::text
