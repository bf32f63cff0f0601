// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/grammars.h"

namespace plimsoll::text {
namespace {

constexpr JsonGrammar kHermes = {.opens = {"<tool_call>"}, .close = "</tool_call>"};
constexpr JsonGrammar kLlamaJson = {.opens = {"<|python_tag|>", "<|python_start|>", "<|python_end|>"},
                                    .close = {},
                                    .from_start = true,
                                    .within_text = true,
                                    .drops_opens = true,
                                    .needs_arguments = true};
constexpr JsonGrammar kGranite = {.opens = {"<|tool_call|>", "<tool_call>"},
                                  .close = "</tool_call>",
                                  .from_start = true,
                                  .needs_arguments = true};

constexpr SectionGrammar kDeepSeekV3 = {.open = "<｜tool▁calls▁begin｜>",
                                        .close = "<｜tool▁calls▁end｜>",
                                        .call_open = "<｜tool▁call▁begin｜>",
                                        .call_close = "<｜tool▁call▁end｜>",
                                        .arguments_open = {"```json", "{"},
                                        .fence = "```",
                                        .form = HeaderForm::kTypeName,
                                        .separator = "<｜tool▁sep｜>"};
constexpr SectionGrammar kDeepSeekV31 = {.open = "<｜tool▁calls▁begin｜>",
                                         .close = "<｜tool▁calls▁end｜>",
                                         .call_open = "<｜tool▁call▁begin｜>",
                                         .call_close = "<｜tool▁call▁end｜>",
                                         .arguments_open = {"<｜tool▁sep｜>"},
                                         .form = HeaderForm::kName,
                                         .separator = {}};
constexpr SectionGrammar kKimiK2 = {.open = "<|tool_calls_section_begin|>",
                                    .close = "<|tool_calls_section_end|>",
                                    .call_open = "<|tool_call_begin|>",
                                    .call_close = "<|tool_call_end|>",
                                    .arguments_open = {"<|tool_call_argument_begin|>"},
                                    .form = HeaderForm::kNameIndex,
                                    .separator = {}};
constexpr SectionGrammar kMistral = {.open = "[TOOL_CALLS]",
                                     .close = {},
                                     .call_open = {},
                                     .call_close = {},
                                     .arguments_open = {"[ARGS]", "{"},
                                     .form = HeaderForm::kNameId,
                                     .separator = "[CALL_ID]",
                                     .takes_list = true};

constexpr TagGrammar kQwenCoder = {.outer_open = "<tool_call>",
                                   .outer_close = "</tool_call>",
                                   .call_open = "<function=",
                                   .name_close = ">",
                                   .call_close = "</function>",
                                   .key_open = "<parameter=",
                                   .key_close = ">",
                                   .value_open = {},
                                   .value_close = "</parameter>",
                                   .trims_newlines = true};
constexpr TagGrammar kSeedOss = {.outer_open = "<seed:tool_call>",
                                 .outer_close = "</seed:tool_call>",
                                 .call_open = "<function=",
                                 .name_close = ">",
                                 .call_close = "</function>",
                                 .key_open = "<parameter=",
                                 .key_close = ">",
                                 .value_open = {},
                                 .value_close = "</parameter>",
                                 .trims_newlines = true};
constexpr TagGrammar kMiniMaxM2 = {.outer_open = "<minimax:tool_call>",
                                   .outer_close = "</minimax:tool_call>",
                                   .call_open = "<invoke name=",
                                   .name_close = ">",
                                   .call_close = "</invoke>",
                                   .key_open = "<parameter name=",
                                   .key_close = ">",
                                   .value_open = {},
                                   .value_close = "</parameter>",
                                   .call_needs_outer = true};
constexpr TagGrammar kDeepSeekV32 = {.outer_open = "<｜DSML｜function_calls>",
                                     .outer_close = "</｜DSML｜function_calls>",
                                     .call_open = "<｜DSML｜invoke name=",
                                     .name_close = ">",
                                     .call_close = "</｜DSML｜invoke>",
                                     .key_open = "<｜DSML｜parameter name=",
                                     .key_close = ">",
                                     .value_open = {},
                                     .value_close = "</｜DSML｜parameter>",
                                     .text_attribute = "string=\"true\"",
                                     .json_attribute = "string=\"false\""};
constexpr TagGrammar kDeepSeekV4 = {.outer_open = "<｜DSML｜tool_calls>",
                                    .outer_close = "</｜DSML｜tool_calls>",
                                    .call_open = "<｜DSML｜invoke name=",
                                    .name_close = ">",
                                    .call_close = "</｜DSML｜invoke>",
                                    .key_open = "<｜DSML｜parameter name=",
                                    .key_close = ">",
                                    .value_open = {},
                                    .value_close = "</｜DSML｜parameter>",
                                    .text_attribute = "string=\"true\"",
                                    .json_attribute = "string=\"false\""};
constexpr TagGrammar kGlm = {.outer_open = {},
                             .outer_close = {},
                             .call_open = "<tool_call>",
                             .name_close = "\n",
                             .call_close = "</tool_call>",
                             .key_open = "<arg_key>",
                             .key_close = "</arg_key>",
                             .value_open = "<arg_value>",
                             .value_close = "</arg_value>",
                             .bare_needs_body = false,
                             .untyped = UntypedValue::kJson};
constexpr TagGrammar kHunyuanV3 = {.outer_open = "<tool_calls:opensource>",
                                   .outer_close = "</tool_calls:opensource>",
                                   .call_open = "<tool_call:opensource>",
                                   .name_close = "<tool_sep:opensource>",
                                   .call_close = "</tool_call:opensource>",
                                   .key_open = "<arg_key:opensource>",
                                   .key_close = "</arg_key:opensource>",
                                   .value_open = "<arg_value:opensource>",
                                   .value_close = "</arg_value:opensource>",
                                   .untyped = UntypedValue::kJson};
constexpr TagGrammar kMiniCpm5 = {.outer_open = {},
                                  .outer_close = {},
                                  .call_open = "<function name=",
                                  .name_close = ">",
                                  .call_close = "</function>",
                                  .key_open = "<param name=",
                                  .key_close = ">",
                                  .value_open = {},
                                  .value_close = "</param>",
                                  .takes_cdata = true};

constexpr TagGrammar kKimiK3 = {
    .outer_open = "<|open|>tools<|sep|>",
    .outer_close = "<|close|>tools<|sep|>",
    .call_open = "<|open|>call tool=",
    .name_close = "<|sep|>",
    .call_close = "<|close|>call<|sep|>",
    .key_open = "<|open|>argument key=",
    .key_close = "<|sep|>",
    .value_open = {},
    .value_close = "<|close|>argument<|sep|>",
    .call_needs_outer = true,
    .text_attribute = "type=\"string\"",
    .json_attribute = "type=",
    .layout = {"<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"}};

constexpr PythonicGrammar kPythonic = {.open = {}, .close = {}, .from_start = true};
constexpr PythonicGrammar kLlama4Pythonic = {
    .open = "<|python_start|>", .close = "<|python_end|>", .from_start = true};
constexpr PythonicGrammar kLfm2 = {.open = "<|tool_call_start|>", .close = "<|tool_call_end|>"};
constexpr PythonicGrammar kOlmo3 = {.open = "<function_calls>", .close = "</function_calls>", .lines = true};

constexpr ToolFormat kToolFormats[] = {
    {"hermes", kHermes},
    {"qwen3_coder", kQwenCoder},
    {"qwen3_xml", kQwenCoder},
    {"llama3_json", kLlamaJson},
    {"llama4_json", kLlamaJson},
    {"pythonic", kPythonic, false},
    {"llama4_pythonic", kLlama4Pythonic},
    {"mistral", kMistral},
    {"deepseek_v3", kDeepSeekV3},
    {"deepseek_v31", kDeepSeekV31},
    {"deepseek_v32", kDeepSeekV32},
    {"deepseek_v4", kDeepSeekV4},
    {"openai", HarmonyGrammar{}},
    {"glm45", kGlm},
    {"glm47", kGlm},
    {"kimi_k2", kKimiK2},
    {"kimi_k3", kKimiK3},
    {"minimax_m2", kMiniMaxM2},
    {"seed_oss", kSeedOss},
    {"granite", kGranite},
    {"granite4", kHermes},
    {"gigachat3", JsonGrammar{.opens = {"<|message_sep|>\n\nfunction call<|role_sep|>\n",
                                        "function call<|role_sep|>\n", "<|function_call|>"},
                              .close = "<|message_sep|>"}},
    {"hy_v3", kHunyuanV3},
    {"internlm", JsonGrammar{.opens = {"<|action_start|><|plugin|>"}, .close = "<|action_end|>"}},
    {"jamba", JsonGrammar{.opens = {"<tool_calls>"}, .close = "</tool_calls>"}},
    {"lfm2", kLfm2},
    {"ling3", kGlm},
    {"longcat", JsonGrammar{.opens = {"<longcat_tool_call>"}, .close = "</longcat_tool_call>"}},
    {"mimo", kQwenCoder},
    {"minicpm5", kMiniCpm5},
    {"olmo3", kOlmo3},
    {"phi4_mini_json", JsonGrammar{.opens = {"functools["}, .close = {}, .needs_arguments = true}, false},
    {"poolside_v1", kGlm},
    {"step3p5", kQwenCoder},
};

using Untagged = ReasoningGrammar::Untagged;
constexpr ReasoningGrammar kThink = {.open = "<think>", .close = "</think>"};
constexpr ReasoningGrammar kThinkTagged = {
    .open = "<think>", .close = "</think>", .untagged = Untagged::kContent};
constexpr ReasoningGrammar kThinkByPrompt = {
    .open = "<think>", .close = "</think>", .untagged = Untagged::kNone};
// Qwen's models sometimes call from within their reasoning; the words after the tag tell a call from a
// mention.
constexpr ReasoningGrammar kThinkOrCall = {.open = "<think>",
                                           .close = "</think>",
                                           .call_open = "<tool_call>",
                                           .call_follows = {"<function=", "{\""}};
constexpr ReasoningGrammar kGlmThink = {.open = "<think>",
                                        .close = "</think>",
                                        .call_open = "<tool_call>",
                                        .call_follows = {"<arg_key>", "</tool_call>"},
                                        .name_comes_first = true};

constexpr ReasoningFormat kReasoningFormats[] = {
    {"deepseek_r1", kThink},
    {"qwen3", kThinkOrCall},
    {"glm45", kGlmThink},
    {"glm47", kGlmThink},
    {"openai_gptoss", HarmonyGrammar{}},
    {"mistral", ReasoningGrammar{.open = "[THINK]", .close = "[/THINK]", .untagged = Untagged::kContent}},
    {"kimi_k2",
     ReasoningGrammar{.open = "<think>", .close = "</think>", .call_open = "<|tool_calls_section_begin|>"}},
    {"kimi_k3", ReasoningGrammar{.open = "<|open|>think<|sep|>",
                                 .close = "<|close|>think<|sep|>",
                                 .content_open = "<|open|>response<|sep|>",
                                 .call_open = "<|open|>tools<|sep|>"}},
    {"minimax_m2",
     ReasoningGrammar{.open = "<think>", .close = "</think>", .call_open = "<minimax:tool_call>"}},
    {"minimax_m2_append_think", KeepGrammar{"<think>"}},
    {"deepseek_v3", kThinkByPrompt},
    {"deepseek_v4", kThinkByPrompt},
    {"ernie45", kThink},
    {"holo2", kThink},
    {"hy_v3",
     ReasoningGrammar{
         .open = "<think:opensource>", .close = "</think:opensource>", .untagged = Untagged::kNone}},
    {"ling3", kGlmThink},
    {"mimo", kThinkOrCall},
    {"nemotron_v3", kThinkOrCall},
    {"olmo3", kThink},
    {"poolside_v1", kThinkTagged},
    {"seed_oss",
     ReasoningGrammar{.open = "<seed:think>", .close = "</seed:think>", .call_open = "<seed:tool_call>"}},
    {"step3", kThink},
    {"step3p5", kThinkOrCall},
};

}  // namespace

std::span<const ToolFormat> tool_formats() {
  return kToolFormats;
}

std::span<const ReasoningFormat> reasoning_formats() {
  return kReasoningFormats;
}

}  // namespace plimsoll::text
