// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/output_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/parsers/grammars.h"
#include "text/parsers/harmony_parser.h"

namespace plimsoll::text {
namespace {

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};

template <class Formats>
auto* format_named(const Formats& formats, std::string_view name) {
  const auto found =
      std::find_if(formats.begin(), formats.end(), [&](const auto& row) { return row.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

/// Reasoning is split off first, calls are looked for in what is left.
class StagedParser : public OutputParser {
 public:
  StagedParser(std::unique_ptr<ReasoningSplitter> splitter, std::unique_ptr<ToolParser> tools,
               std::string_view prefix, bool needs_special_tokens)
      : splitter_(std::move(splitter)),
        tools_(std::move(tools)),
        needs_special_tokens_(needs_special_tokens) {
    content(prefix);
  }

  OutputDelta push(std::string_view text) override {
    if (splitter_) {
      splitter_->push(
          text, [this](auto part) { sink_.reasoning(part); }, [this](auto part) { behind_reasoning(part); });
    } else {
      content(text);
    }
    return sink_.take();
  }

  OutputDelta finish() override {
    if (splitter_) {
      splitter_->finish([this](auto part) { sink_.reasoning(part); },
                        [this](auto part) { behind_reasoning(part); });
    }
    if (tools_) tools_->finish(sink_);
    return sink_.take();
  }

  bool has_tool_calls() const override { return sink_.num_calls() > 0; }
  bool needs_special_tokens() const override { return needs_special_tokens_; }

 private:
  void behind_reasoning(std::string_view text) {
    if (const std::string_view marker = splitter_->take_unclosed(); !marker.empty()) sink_.drop_next(marker);
    content(text);
  }

  void content(std::string_view text) {
    if (tools_) {
      tools_->push(text, sink_);
    } else {
      sink_.plain_content(text);
    }
  }

  std::unique_ptr<ReasoningSplitter> splitter_;
  std::unique_ptr<ToolParser> tools_;
  DeltaSink sink_;
  bool needs_special_tokens_;
};

class HarmonyOutputParser : public OutputParser {
 public:
  HarmonyOutputParser(bool reads_calls, const Json& tools) : parser_(reads_calls, tools) {}
  OutputDelta push(std::string_view text) override {
    parser_.push(text, sink_);
    return sink_.take();
  }
  OutputDelta finish() override {
    parser_.finish(sink_);
    return sink_.take();
  }
  bool has_tool_calls() const override { return sink_.num_calls() > 0; }
  bool needs_special_tokens() const override { return true; }

 private:
  HarmonyParser parser_;
  DeltaSink sink_;
};

std::unique_ptr<ToolParser> make_tool_parser(const ToolFormat& format, const Json& tools) {
  return std::visit(Overloaded{[](const JsonGrammar& grammar) { return make_json_call_parser(grammar); },
                               [](const SectionGrammar& grammar) { return make_section_parser(grammar); },
                               [&](const TagGrammar& grammar) { return make_tag_parser(grammar, tools); },
                               [](const PythonicGrammar& grammar) { return make_pythonic_parser(grammar); },
                               [](const HarmonyGrammar&) { return std::unique_ptr<ToolParser>(); }},
                    format.grammar);
}

template <class Formats>
tl::unexpected<Error> unknown_name(std::string_view kind, std::string_view name, const Formats& formats) {
  std::string known;
  for (const auto& row : formats) known += (known.empty() ? "" : " ") + std::string(row.name);
  return fail(ErrorCode::kUsage, fmt::format("no {} parser is called \"{}\"", kind, name), {},
              fmt::format("take one of: {}", known));
}

template <class Formats>
std::vector<std::string_view> names_of(const Formats& formats) {
  std::vector<std::string_view> names;
  for (const auto& row : formats) names.push_back(row.name);
  return names;
}

}  // namespace

Result<std::unique_ptr<OutputParser>> make_output_parser(const OutputParserOptions& options) {
  const ToolFormat* tool = format_named(tool_formats(), options.tool_parser);
  const ReasoningFormat* reasoning = format_named(reasoning_formats(), options.reasoning_parser);
  if (!tool && !options.tool_parser.empty()) return unknown_name("tool", options.tool_parser, tool_formats());
  if (!reasoning && !options.reasoning_parser.empty()) {
    return unknown_name("reasoning", options.reasoning_parser, reasoning_formats());
  }
  const bool has_harmony_tools = tool && std::holds_alternative<HarmonyGrammar>(tool->grammar);
  const bool has_harmony_reasoning = reasoning && std::holds_alternative<HarmonyGrammar>(reasoning->grammar);
  if ((has_harmony_tools && reasoning && !has_harmony_reasoning) ||
      (has_harmony_reasoning && tool && !has_harmony_tools)) {
    return fail(
        ErrorCode::kUsage,
        fmt::format(
            "the parsers \"{}\" and \"{}\" read different formats: gpt-oss writes reasoning and calls "
            "in one",
            tool->name, reasoning->name),
        {}, "pair openai with openai_gptoss");
  }
  if (has_harmony_tools || has_harmony_reasoning) {
    return std::make_unique<HarmonyOutputParser>(has_harmony_tools, options.tools);
  }

  std::unique_ptr<ReasoningSplitter> splitter;
  std::string_view prefix;
  if (reasoning) {
    if (const auto* keep = std::get_if<KeepGrammar>(&reasoning->grammar)) prefix = keep->open;
    if (const auto* grammar = std::get_if<ReasoningGrammar>(&reasoning->grammar)) {
      splitter = std::make_unique<ReasoningSplitter>(*grammar, options.reasoning_start, tool != nullptr);
    }
  }
  return std::make_unique<StagedParser>(std::move(splitter),
                                        tool ? make_tool_parser(*tool, options.tools) : nullptr, prefix,
                                        reasoning || (tool && tool->has_special_tokens));
}

Result<OutputDelta> parse_output(const OutputParserOptions& options, std::string_view text) {
  PLIMSOLL_TRY(const auto parser, make_output_parser(options));
  OutputDelta delta = parser->push(text);
  OutputDelta rest = parser->finish();
  delta.reasoning += rest.reasoning;
  delta.content += rest.content;
  for (ToolCallDelta& call : rest.tool_calls) {
    if (delta.tool_calls.empty() || delta.tool_calls.back().index != call.index) {
      delta.tool_calls.push_back(std::move(call));
    } else {
      delta.tool_calls.back().arguments += call.arguments;
    }
  }
  return delta;
}

std::vector<std::string_view> tool_parser_names() {
  return names_of(tool_formats());
}

std::vector<std::string_view> reasoning_parser_names() {
  return names_of(reasoning_formats());
}

ReasoningStart reasoning_start_of(std::string_view reasoning_parser, std::string_view prompt) {
  const ReasoningFormat* format = format_named(reasoning_formats(), reasoning_parser);
  const auto* grammar = format ? std::get_if<ReasoningGrammar>(&format->grammar) : nullptr;
  const std::string_view text = trimmed(prompt);
  if (grammar && text.ends_with(grammar->open)) return ReasoningStart::kOpen;
  const bool has_content_open = grammar && !grammar->content_open.empty();
  if (has_content_open && text.ends_with(grammar->content_open)) return ReasoningStart::kClosed;
  if (grammar && text.ends_with(grammar->close)) return ReasoningStart::kClosed;
  return ReasoningStart::kByParser;
}

}  // namespace plimsoll::text
