// SPDX-License-Identifier: Apache-2.0
#include "serve/chat.h"

#include <gtest/gtest.h>

#include "tests/serve/doubles.h"

namespace plimsoll::serve {
namespace {

Json json(const std::string& text) {
  auto parsed = parse_json(text, "test");
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Json();
}

/// The prompt of a chat body, or the parameter that was refused.
std::string prompt_or_param(const ModelContext& context, const std::string& body) {
  const Json object = json(body);
  Fields fields(object);
  const Prompt prompt = read_chat_prompt(fields, context);
  return fields.error() ? "400 " + fields.error()->param.value_or("") : prompt.text;
}

TEST(Chat, TextPartsAreJoinedForTemplatesOfStrings) {
  const Json messages =
      json(R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
  EXPECT_EQ(dump(*normalise_messages(messages, false)), R"([{"role":"user","content":"a\nb"}])");
  EXPECT_EQ(dump(*normalise_messages(messages, true)),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])");
}

TEST(Chat, ToolCallsGetTheirArgumentsAsObjects) {
  const Json messages = json(
      R"([{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},
          {"role":"tool","tool_call_id":"1","content":"ok"}])");
  EXPECT_EQ(
      dump(*normalise_messages(messages, false)),
      R"([{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"x":1}}}]},)"
      R"({"role":"tool","content":"ok","tool_call_id":"1"}])");
}

TEST(Chat, RefusalsNameTheirPlace) {
  const ModelContext context = test_context();
  const auto messages = [&](const std::string& list) {
    return prompt_or_param(context, R"({"messages":)" + list + "}");
  };
  EXPECT_EQ(
      messages(
          R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]}])"),
      "400 messages[0].content[1].image_url");
  EXPECT_EQ(messages(R"([])"), "400 messages");
  EXPECT_EQ(messages(R"("hi")"), "400 messages");
  EXPECT_EQ(messages(R"([{"content":"x"}])"), "400 messages[0].role");
  EXPECT_EQ(messages(R"([{"role":"user"}])"), "400 messages[0].content");
  EXPECT_EQ(messages(R"([{"role":"user","content":5}])"), "400 messages[0].content");
  EXPECT_EQ(messages(R"([{"role":"bad","content":"x"}])"), "400 messages");  // the template's own refusal
  EXPECT_EQ(messages(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{"}}]}])"),
            "400 messages[0].tool_calls[0].function.arguments");
  EXPECT_EQ(prompt_or_param(context, "{}"), "400 messages");
}

TEST(Chat, ToolChoice) {
  const ModelContext context = test_context();
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"f","parameters":{}}}])";
  const auto body = [&](const std::string& fields) {
    return prompt_or_param(context, R"({"messages":[{"role":"user","content":"x"}],)" + fields + "}");
  };
  EXPECT_EQ(body(tools + R"(,"tool_choice":"auto")"), "[user]x[assistant]");
  EXPECT_EQ(body(tools + R"(,"tool_choice":"none")"), "[user]x[assistant]");
  EXPECT_EQ(body(tools + R"(,"tool_choice":"required")"), "400 tool_choice");
  EXPECT_EQ(body(R"("tool_choice":{"type":"function","function":{"name":"f"}})"), "400 tool_choice");
  EXPECT_EQ(body(tools + R"(,"tool_choice":{"type":"function","function":{"name":"g"}})"), "400 tool_choice");
  EXPECT_EQ(body(R"("tools":[{"type":"function"}])"), "400 tools");
}

TEST(Chat, TemplateVariables) {
  ModelContext context = test_context();
  const auto used = std::make_shared<PlainTemplate>();
  context.chat_template = used;
  prompt_or_param(context, R"({"messages":[{"role":"user","content":"x"}],"reasoning_effort":"low",
                              "chat_template_kwargs":{"enable_thinking":false}})");
  EXPECT_EQ(used->last_context["enable_thinking"], Json(false));
  EXPECT_EQ(used->last_context["reasoning_effort"], Json("low"));
  EXPECT_EQ(used->last_context["bos_token"], Json("<s>"));
  EXPECT_EQ(used->last_context["eos_token"], Json("</s>"));
  EXPECT_TRUE(used->last_context["tools"].is_null());
  EXPECT_EQ(
      prompt_or_param(
          context, R"({"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"messages":[]}})"),
      "400 chat_template_kwargs");
}

TEST(Chat, TheFinalMessageIsContinued) {
  const ModelContext context = test_context();
  const std::string messages =
      R"("messages":[{"role":"user","content":"x"},{"role":"assistant","content":"so far "}])";
  EXPECT_EQ(prompt_or_param(
                context, "{" + messages + R"(,"add_generation_prompt":false,"continue_final_message":true})"),
            "[user]x[assistant]so far ");
  EXPECT_EQ(prompt_or_param(
                context, "{" + messages + R"(,"add_generation_prompt":true,"continue_final_message":true})"),
            "400 continue_final_message");
}

TEST(Chat, TheTemplatesErrorNamesItsLineAndColumn) {
  ModelContext context = test_context();
  auto parsed = text::ChatTemplate::parse("{% if messages %}\n  {{ raise_exception('no') }}{% endif %}");
  ASSERT_TRUE(parsed);
  context.chat_template = *parsed;
  const Json body = json(R"({"messages":[{"role":"user","content":"x"}]})");
  Fields fields(body);
  read_chat_prompt(fields, context);
  ASSERT_TRUE(fields.error());
  EXPECT_EQ(fields.error()->message,
            "the chat template refuses these messages: TemplateError: no (line 2, column 6)");
}

TEST(Chat, AModelWithoutTemplate) {
  ModelContext context = test_context();
  context.chat_template = nullptr;
  EXPECT_EQ(prompt_or_param(context, R"({"messages":[{"role":"user","content":"x"}]})"), "400 messages");
}

}  // namespace
}  // namespace plimsoll::serve
