// SPDX-License-Identifier: Apache-2.0
// Which formats does a chat template speak? Told by the literals it writes; the first row that fits decides.
#include <algorithm>

#include "text/parsers/output_parser.h"

namespace plimsoll::text {
namespace {

struct Rule {
  std::string_view parser;
  std::string_view has[3];      // all of them are in the template
  std::string_view has_not[2];  // none of them is
  std::string_view model_type;  // and config.json says so; empty: whatever it says
};

constexpr Rule kToolRules[] = {
    {"openai", {"<|channel|>", "<|message|>", "functions."}, {}, {}},
    {"kimi_k2", {"<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"}, {}, {}},
    {"kimi_k3", {"<|open|>", "<|sep|>", "call"}, {}, {}},
    {"deepseek_v4", {"DSML", "tool_calls"}, {"function_calls"}, {}},
    {"deepseek_v32", {"DSML", "function_calls"}, {}, {}},
    {"deepseek_v3", {"<｜tool▁calls▁begin｜>", "```json"}, {}, {}},
    {"deepseek_v31", {"<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"}, {}, {}},
    {"minimax_m2", {"minimax:tool_call"}, {}, {}},
    {"seed_oss", {"<seed:tool_call>", "<function="}, {}, {}},
    {"hy_v3", {"tool_calls{}", "arg_key{}"}, {}, {}},
    {"poolside_v1", {"<tool_call>", "<arg_key>", "<assistant>"}, {}, {}},
    {"ling3", {"<tool_call>", "<arg_key>", "<role>"}, {}, {}},
    {"glm47", {"<tool_call>", "</arg_key><arg_value>"}, {}, {}},
    {"glm45", {"<tool_call>", "<arg_key>"}, {}, {}},
    {"step3p5", {"<tool_call>", "<function=", "<|im_start|>tool_response"}, {}, {}},
    {"qwen3_coder", {"<tool_call>", "<function=", "<parameter="}, {}, {}},
    {"lfm2", {"<|tool_call_start|>"}, {}, {}},
    {"olmo3", {"<function_calls>", "olmo"}, {}, {}},
    {"minicpm5", {"<function name=", "<param name="}, {}, {}},
    {"gigachat3", {"function call", "<|role_sep|>"}, {}, {}},
    {"gigachat3", {"<|function_call|>", "<|role_sep|>"}, {}, {}},
    {"mistral", {"[TOOL_CALLS]"}, {}, {}},
    {"granite4", {"<tool_call>", "<|start_of_role|>"}, {}, {}},
    {"longcat", {"<longcat_tool_call>"}, {}, {}},
    {"jamba", {"<tool_calls>[", "</tool_calls>"}, {}, {}},
    {"hermes", {"<tool_call>", "</tool_call>"}, {"]<]minimax[>["}, {}},
    {"llama4_pythonic", {"<|header_start|>", "<|python_start|>"}, {"{\"name\""}, {}},
    {"llama4_json", {"<|header_start|>", "ipython"}, {}, {}},
    {"llama3_json", {"<|start_header_id|>", "\"parameters\": ", "{\"name\": "}, {"<function="}, {}},
};

constexpr Rule kReasoningRules[] = {
    {"openai_gptoss", {"<|channel|>", "<|message|>", "analysis"}, {}, {}},
    {"mistral", {"[THINK]", "[/THINK]"}, {}, {}},
    {"seed_oss", {"<seed:think>"}, {}, {}},
    {"hy_v3", {"think{}", "arg_key{}"}, {}, {}},
    {"kimi_k2", {"<think>", "<|tool_calls_section_begin|>"}, {}, {}},
    {"kimi_k3", {"<|open|>", "<|sep|>", "think"}, {}, {}},
    {"minimax_m2", {"<think>", "minimax:tool_call"}, {}, {}},
    {"deepseek_v4", {"<think>", "DSML"}, {"function_calls"}, {}},
    {"deepseek_v3", {"<think>", "DSML"}, {}, {}},
    {"deepseek_v3", {"<think>", "</think>", "<｜tool▁calls▁begin｜>"}, {"```json"}, {}},
    {"poolside_v1", {"<think>", "<arg_key>", "<assistant>"}, {}, {}},
    {"ling3", {"<think>", "<arg_key>", "<role>"}, {}, {}},
    {"glm47", {"<think>", "</arg_key><arg_value>"}, {}, {}},
    {"glm45", {"<think>", "<arg_key>"}, {}, {}},
    {"step3p5", {"<think>", "<function=", "<|im_start|>tool_response"}, {}, {}},
    {"nemotron_v3", {"<think>", "<function=", "truncate_history_thinking"}, {}, {}},
    {"nemotron_v3", {"<think>", "<function="}, {}, "nemotron_h"},
    {"deepseek_r1", {"</think>", "<｜Assistant｜>"}, {}, {}},
    {"qwen3", {"<think>", "</think>", "<|im_start|>"}, {}, {}},
};

template <std::size_t kNumRules>
std::string first_match(const Rule (&rules)[kNumRules], std::string_view source,
                        std::string_view model_type) {
  const auto is_there = [&](std::string_view literal) {
    return literal.empty() || source.find(literal) != std::string_view::npos;
  };
  const auto is_missing = [&](std::string_view literal) {
    return literal.empty() || source.find(literal) == std::string_view::npos;
  };
  for (const Rule& rule : rules) {
    if (!rule.model_type.empty() && rule.model_type != model_type) continue;
    if (std::all_of(std::begin(rule.has), std::end(rule.has), is_there) &&
        std::all_of(std::begin(rule.has_not), std::end(rule.has_not), is_missing)) {
      return std::string(rule.parser);
    }
  }
  return {};
}

}  // namespace

SuggestedParsers suggest_parsers(std::string_view template_source, std::string_view model_type) {
  return {first_match(kToolRules, template_source, model_type),
          first_match(kReasoningRules, template_source, model_type)};
}

}  // namespace plimsoll::text
