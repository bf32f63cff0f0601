// SPDX-License-Identifier: Apache-2.0
// The formats as data: vLLM's name of a parser -> the grammar it reads. A new format that fits one of the
// grammars is a row in grammars.cpp, a section in docs/formats/tool_calls.md and a case in its tests.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <variant>

#include "text/parsers/reasoning_splitter.h"
#include "text/parsers/tool_parser.h"

namespace plimsoll::text {

/// gpt-oss: one parser reads reasoning and calls.
struct HarmonyGrammar {};

struct ToolFormat {
  std::string_view name;
  std::variant<JsonGrammar, SectionGrammar, TagGrammar, PythonicGrammar, HarmonyGrammar> grammar;
  bool has_special_tokens = true;  // among its markers, in some model of the family
};
std::span<const ToolFormat> tool_formats();

/// The reasoning stays in the content, behind a start tag that the prompt has swallowed.
struct KeepGrammar {
  std::string_view open;
};

struct ReasoningFormat {
  std::string_view name;
  std::variant<ReasoningGrammar, KeepGrammar, HarmonyGrammar> grammar;
};
std::span<const ReasoningFormat> reasoning_formats();

}  // namespace plimsoll::text
