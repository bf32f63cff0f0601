// SPDX-License-Identifier: Apache-2.0
// What of a model's answer is reasoning, what is content, what are tool calls? Fed one token's text at a time
// or all at once, with equal results. Which tags a format has stands in tables beside this file; how a delta
// becomes an OpenAI chunk, and ids of calls, are left to the server. A parser owns what it holds back and
// serves one choice of one answer, from one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::text {

struct ToolCallDelta {
  int index = 0;                    // of the call within the answer, from 0
  std::optional<std::string> name;  // once, in the first delta of the call
  std::optional<std::string> id;    // beside the name, where the format carries one (kimi_k2, mistral)
  std::string arguments;            // JSON text to append to what came before
};

struct OutputDelta {
  std::string reasoning;
  std::string content;
  std::vector<ToolCallDelta> tool_calls;  // at most one entry per call
  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

/// How the prompt leaves the reasoning when the model takes over.
enum class ReasoningStart {
  kByParser,  // the prompt does not say: the reasoning parser's own rule
  kOpen,      // the prompt ends with the start tag
  kClosed,    // the prompt ends with the end tag, or thinking is switched off
};

struct OutputParserOptions {
  std::string tool_parser;       // a name of tool_parser_names(); empty: calls are plain content
  std::string reasoning_parser;  // a name of reasoning_parser_names(); empty: reasoning is plain content
  Json tools;                    // the request's "tools": types the arguments of formats that write text
  ReasoningStart reasoning_start = ReasoningStart::kByParser;
};

class OutputParser {
 public:
  virtual ~OutputParser() = default;
  /// What `text` settles. Markers may be cut anywhere between pushes, inside a character too.
  virtual OutputDelta push(std::string_view text) = 0;
  /// What was held back: an unfinished marker or a call without a name is content again; a call that had
  /// begun ends as far as it was written, so cut arguments stay incomplete JSON. Nothing may be pushed
  /// afterwards.
  virtual OutputDelta finish() = 0;
  /// A call has begun: finish_reason is "tool_calls".
  virtual bool has_tool_calls() const = 0;
  /// The markers are special tokens in the models of this format: the text must be decoded with them kept.
  virtual bool needs_special_tokens() const = 0;
};

/// Errors: kUsage for an unknown name, and for gpt-oss' format paired with another.
/// Source: docs/formats/tool_calls.md.
Result<std::unique_ptr<OutputParser>> make_output_parser(const OutputParserOptions& options);

/// The whole answer in one delta: push and finish.
Result<OutputDelta> parse_output(const OutputParserOptions& options, std::string_view text);

/// vLLM's names and aliases, in the order of the tables.
std::vector<std::string_view> tool_parser_names();
std::vector<std::string_view> reasoning_parser_names();

/// How `prompt`, rendered with a generation prompt, leaves the reasoning: its last tag at the very end
/// counts, tags in the conversation do not.
ReasoningStart reasoning_start_of(std::string_view reasoning_parser, std::string_view prompt);

struct SuggestedParsers {
  std::string tool_parser;       // empty: the template speaks no format known here
  std::string reasoning_parser;  // empty: none
};
/// The formats that a chat template writes, seen by its literals; `model_type` (config.json) decides where
/// templates look alike, and may be empty.
SuggestedParsers suggest_parsers(std::string_view template_source, std::string_view model_type = {});

}  // namespace plimsoll::text
