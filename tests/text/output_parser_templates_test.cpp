// SPDX-License-Identifier: Apache-2.0
// Round trips: an assistant's calls, written by a chat template, are read back by the parsers that the
// template itself suggests. Two templates of our own always, the real ones with PLIMSOLL_GOLDEN.
#include <gtest/gtest.h>

#include <set>

#include "base/mapped_file.h"
#include "tests/testing/golden.h"
#include "tests/text/output_runs.h"
#include "text/chat.h"

namespace plimsoll::text {
namespace {

constexpr const char* kOwnHermes =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content or "
    "'' }}"
    "{% for c in m.tool_calls %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
    "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
constexpr const char* kOwnCoder =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls "
    "%}\n<tool_call>\n"
    "<function={{ c.function.name }}>\n{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n"
    "{{ v if v is string else v | tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

Json json(const char* text) {
  return *parse_json(text, "test");
}

const Json& tools() {
  static const Json parsed = json(
      R"([{"type":"function","function":{"name":"get_weather","description":"Weather.","parameters":{"type":"object",
          "properties":{"city":{"type":"string","description":"where"},"days":{"type":"integer","description":"n"},
          "note":{"type":"string","description":"x"},"xs":{"type":"array","description":"x","items":{"type":"number"}},
          "opts":{"type":"object","description":"o","properties":{}},"deep":{"type":"boolean","description":"d"}},
          "required":["city"]}}},
          {"type":"function","function":{"name":"list-all","description":"Lists.","parameters":{"type":"object",
          "properties":{"kind":{"type":"string","description":"k"}},"required":[]}}}])");
  return parsed;
}

/// Assistant messages as a request's history holds them.
const std::vector<Json>& answers() {
  static const std::vector<Json> all = {
      json(R"({"role":"assistant","content":"Let me check.","tool_calls":[
          {"id":"call00001","type":"function","function":{"name":"get_weather","arguments":{"city":"서울 🍲","days":3}}},
          {"id":"call00002","type":"function","function":{"name":"list-all","arguments":{"kind":"a"}}}]})"),
      json(R"({"role":"assistant","content":"","tool_calls":[
          {"id":"call00001","type":"function","function":{"name":"get_weather","arguments":{
           "city":"it's {\"a\": [1]} } ] <b> \\ é","days":-12,"note":"two\nlines, \"q\"","xs":[1,2.5,-3e10],
           "opts":{"a":{"b":[true,null,"x y"]}},"deep":true}}}]})"),
      json(R"({"role":"assistant","content":"So.","reasoning_content":"I think\nso.","tool_calls":[
          {"id":"call00001","type":"function","function":{"name":"get_weather","arguments":{"city":"Oslo"}}}]})"),
      json(R"({"role":"assistant","content":"","tool_calls":[
          {"id":"call00001","type":"function","function":{"name":"list-all","arguments":{}}}]})"),
      json(R"({"role":"assistant","content":null,"tool_calls":[
          {"id":"call00001","type":"function","function":{"name":"get_weather","arguments":{"city":"a\nb","days":0}}}]})"),
      json(R"({"role":"assistant","content":"Just text.","reasoning_content":"Hm."})"),
  };
  return all;
}

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \n");
  return from == std::string_view::npos ? "" : text.substr(from, text.find_last_not_of(" \n") + 1 - from);
}

/// What ends a turn in the templates here; a server cuts its answer at these tokens.
constexpr std::string_view kTurnEnds[] = {
    "<|im_end|>",   "<｜end▁of▁sentence｜>",   "</s>",       "<|eot_id|>",     "<|eom_id|>",
    "<|eot|>",      "<|end_of_text|>",         "[e~[",       "<seed:eos>",     "<|role_end|>",
    "</assistant>", "<|observation|>",         "<|return|>", "<|end_of_msg|>", "<SPECIAL_12>",
    "<sep>",        "<｜hy_eos:opensource｜>", "<|end|>\n",  "<|user|>"};

struct Rendered {
  std::string prompt;
  std::string answer;
};

/// What the model would have written after the prompt; nothing where the template refuses the conversation.
std::optional<Rendered> written_answer(const ChatTemplate& chat_template, const Json& message,
                                       const Json& settings) {
  Json context = settings;
  Json messages = json(R"([{"role":"user","content":"Go on"}])");
  context.set("messages", messages);
  context.set("tools", tools());
  context.set("add_generation_prompt", true);
  const ChatOptions options = {.now = "2026-01-15T09:30:00"};
  auto prompt = render_chat(chat_template, context, options);
  messages.push_back(message);
  context.set("messages", messages);
  context.set("add_generation_prompt", false);
  const auto full = render_chat(chat_template, context, options);
  if (!prompt || !full) return std::nullopt;
  // A prompt may open or close the reasoning where the history leaves its tags out.
  std::string shared = *prompt;
  for (const std::string_view tag : {"<think>", "</think>", "<think>"}) {
    if (full->starts_with(shared)) break;
    const auto at = shared.rfind(tag);
    if (at != std::string::npos && trimmed(shared.substr(at + tag.size())).empty()) shared.resize(at);
  }
  if (!full->starts_with(shared)) return Rendered{*prompt, ""};
  std::string answer = full->substr(shared.size());
  if (shared != *prompt) prompt->resize(shared.size());
  std::size_t end = answer.size();
  for (const std::string_view marker : kTurnEnds) end = std::min(end, answer.find(marker));
  if (trimmed(answer).ends_with("<|message_sep|>")) end = std::min(end, answer.rfind("<|message_sep|>"));
  return Rendered{*prompt, answer.substr(0, end)};
}

Json with_arguments_as_text(Json message) {
  Json calls = Json::array();
  for (Json call : message["tool_calls"].items()) {
    Json function = call["function"];
    function.set("arguments", dump(function["arguments"]));
    call.set("function", function);
    calls.push_back(call);
  }
  message.set("tool_calls", calls);
  return message;
}

void expect_read_back(const ParsedOutput& got, const Json& message, const std::string& answer) {
  const auto is_written = [&](const std::string& text) { return answer.find(text) != std::string::npos; };
  // Some templates write no content beside calls, gpt-oss' writes it as reasoning, some drop the reasoning.
  const auto text_of = [&](const char* key) {
    return message[key].is_null() ? "" : *message[key].as_string();
  };
  const bool is_none = message["content"].is_null() && is_written("None");  // as Python prints it
  const std::string content = is_none ? "None" : is_written(text_of("content")) ? text_of("content") : "";
  const std::string reasoning = text_of("reasoning_content");
  const bool is_content_reasoning = got.content.empty() && trimmed(got.reasoning) == content;
  EXPECT_TRUE(trimmed(got.content) == content || is_content_reasoning) << got << "\n" << answer;
  EXPECT_TRUE(got.reasoning.empty() || trimmed(got.reasoning) == reasoning || is_content_reasoning)
      << got << "\n"
      << answer;
  std::size_t num_calls = 0;
  for (const Json& call : message["tool_calls"].items()) {
    // Some templates write one call only, some none beside content.
    if (!is_written(*call["function"]["name"].as_string())) continue;
    ASSERT_LT(num_calls, got.calls.size()) << answer;
    EXPECT_EQ(got.calls[num_calls].name, *call["function"]["name"].as_string()) << answer;
    const auto arguments = parse_json(got.calls[num_calls].arguments, "arguments");
    ASSERT_TRUE(arguments) << got.calls[num_calls].arguments << "\n" << answer;
    EXPECT_EQ(dump(*arguments), dump(call["function"]["arguments"])) << answer;
    ++num_calls;
  }
  EXPECT_EQ(got.calls.size(), num_calls) << got << "\n" << answer;
}

struct Counts {
  int round_trips = 0;
  int not_continued = 0;  // the history is written differently from what the prompt begins
  int refused = 0;
};

Counts round_trips(const std::string& source, const Json& settings) {
  Counts counts;
  const auto chat_template = ChatTemplate::parse(source);
  EXPECT_TRUE(chat_template);
  if (!chat_template) return counts;
  const SuggestedParsers suggested = suggest_parsers(source);
  for (const Json& message : answers()) {
    auto rendered = written_answer(**chat_template, message, settings);
    if (!rendered) rendered = written_answer(**chat_template, with_arguments_as_text(message), settings);
    if (!rendered) {
      ++counts.refused;
      continue;
    }
    if (rendered->answer.empty()) {
      ++counts.not_continued;
      continue;
    }
    OutputParserOptions options;
    options.tool_parser = suggested.tool_parser;
    options.reasoning_parser = suggested.reasoning_parser;
    options.tools = tools();
    options.reasoning_start = reasoning_start_of(suggested.reasoning_parser, rendered->prompt);
    // A template that drops the reasoning of the past writes what the model writes with thinking switched
    // off.
    if (options.reasoning_start == ReasoningStart::kByParser &&
        rendered->answer.find("think>") == std::string::npos &&
        rendered->answer.find("THINK]") == std::string::npos) {
      options.reasoning_start = ReasoningStart::kClosed;
    }
    if (suggested.tool_parser == "lfm2" && rendered->answer.find("it's") != std::string::npos) {
      continue;  // that template writes quotes within quotes, which no reader can undo
    }
    ++counts.round_trips;
    expect_read_back(run_every_way(options, rendered->answer), message, rendered->answer);
  }
  return counts;
}

TEST(OutputParserTemplates, OwnTemplatesReadBack) {
  EXPECT_EQ(suggest_parsers(kOwnHermes).tool_parser, "hermes");
  EXPECT_EQ(suggest_parsers(kOwnHermes).reasoning_parser, "qwen3");
  EXPECT_EQ(suggest_parsers(kOwnCoder).tool_parser, "qwen3_coder");
  EXPECT_EQ(suggest_parsers("{{ messages }}").tool_parser, "");
  EXPECT_EQ(round_trips(kOwnHermes, Json::object()).round_trips, 6);
  EXPECT_EQ(round_trips(kOwnCoder, Json::object()).round_trips, 6);
}

TEST(OutputParserTemplates, RealTemplatesReadBack) {
  const std::string folder = testing::golden_path("chat_templates");
  const auto index = read_json_file(folder + "/index.json");
  if (!index) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  const Json settings = Json::object({{"bos_token", ""}, {"eos_token", "</s>"}});
  // Refuses every conversation, or begins the answer with words that its history leaves out.
  const std::set<std::string> without_answers = {"llama-cpp-deepseek-r1", "Apriel-1.6-15b-Thinker-fixed"};
  int num_round_trips = 0, num_templates = 0;
  for (const Json& entry : index->items()) {
    const std::string& name = *entry["name"].as_string();
    const auto source = read_file(folder + "/" + name + ".jinja");
    ASSERT_TRUE(source);
    const SuggestedParsers suggested = suggest_parsers(*source);
    SCOPED_TRACE(name + " " + suggested.tool_parser + " " + suggested.reasoning_parser);
    const bool writes_calls = !suggested.tool_parser.empty();
    const Counts counts = writes_calls ? round_trips(*source, settings) : Counts();
    EXPECT_EQ(counts.round_trips > 0, writes_calls && !without_answers.contains(name));
    num_round_trips += counts.round_trips;
    num_templates += writes_calls;
  }
  EXPECT_GE(num_templates, 61);
  EXPECT_GE(num_round_trips, 300);
}

TEST(OutputParserTemplates, SuggestsTheParsersThatTheModelsAreServedWith) {
  const std::string folder = testing::golden_path("chat_templates");
  if (!read_json_file(folder + "/index.json")) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  struct {
    const char *name, *tool, *reasoning;
  } constexpr kKnown[] = {
      {"Qwen-Qwen3-0.6B", "hermes", "qwen3"},
      {"Qwen-Qwen2.5-7B-Instruct", "hermes", ""},
      {"Qwen3-Coder", "qwen3_coder", ""},
      {"Qwen3.5-4B", "qwen3_coder", "qwen3"},
      {"NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "qwen3_coder", "nemotron_v3"},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3", "deepseek_r1"},
      {"deepseek-ai-DeepSeek-V3.1", "deepseek_v31", "deepseek_v3"},
      {"deepseek-ai-DeepSeek-V3.2", "deepseek_v32", "deepseek_v3"},
      {"deepseek-ai-DeepSeek-V4", "deepseek_v4", "deepseek_v4"},
      {"openai-gpt-oss-120b", "openai", "openai_gptoss"},
      {"GLM-4.6", "glm45", "glm45"},
      {"GLM-4.7-Flash", "glm47", "glm47"},
      {"moonshotai-Kimi-K2", "kimi_k2", ""},
      {"Kimi-K2-Thinking", "kimi_k2", "kimi_k2"},
      {"Kimi-K3", "kimi_k3", "kimi_k3"},
      {"MiniMax-M2", "minimax_m2", "minimax_m2"},
      {"MiniMax-M3", "", ""},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama3_json", ""},
      {"ollama-library_llama4_latest", "llama4_json", ""},
      {"Mistral-Small-3.2-24B-Instruct-2506", "mistral", ""},
      {"mistralai-Ministral-3-14B-Reasoning-2512", "mistral", "mistral"},
      {"google-gemma-4-31B-it", "", ""},
      {"LFM2.5-8B-A1B", "lfm2", "qwen3"},
      {"StepFun3.5-Flash", "step3p5", "step3p5"},
      {"ByteDance-Seed-OSS", "seed_oss", "seed_oss"},
      {"tencent-Hy3", "hy_v3", "hy_v3"},
      {"ibm-granite-granite-4.0", "granite4", ""},
      {"ollama-library_phi4_14b", "", ""},
  };
  for (const auto& known : kKnown) {
    const auto source = read_file(folder + "/" + known.name + ".jinja");
    ASSERT_TRUE(source) << known.name;
    const SuggestedParsers suggested = suggest_parsers(*source);
    EXPECT_EQ(suggested.tool_parser, known.tool) << known.name;
    EXPECT_EQ(suggested.reasoning_parser, known.reasoning) << known.name;
  }
}

}  // namespace
}  // namespace plimsoll::text
