// SPDX-License-Identifier: Apache-2.0
#include "text/template_renderer.h"

#include "text/chat.h"

namespace plimsoll::text {

LineAnswer TemplateRenderer::render(const Json& line) {
  const std::string* named = line["template_name"].as_string();
  const auto parsed =
      find(named ? *named : choice_.name, line["tools"].is_array() && line["tools"].size() > 0);
  if (!parsed) return tl::unexpected(parsed.error());
  Json context = Json::object();
  for (const auto& [key, value] : line.members())
    if (key != "now") context.set(key, value);
  for (const char* token : {"bos_token", "eos_token"})
    if (context[token].is_null())
      context.set(token, choice_.artifact ? special_token_text(*choice_.artifact, token) : "");
  ChatOptions options;
  const std::string* format = line["content_format"].as_string();
  options.normalize_content = format && *format == "auto";
  options.continue_final_message = line["continue_final_message"].as_bool().value_or(false);
  if (const std::string* now = line["now"].as_string()) options.now = *now;
  auto text = render_chat(**parsed, context, options);
  if (!text) return tl::unexpected(std::move(text.error()));
  return Json::object({{"text", std::move(*text)}});
}

TemplateRenderer::Parsed TemplateRenderer::find(const std::string& name, bool has_tools) {
  std::optional<std::string> source = choice_.source;
  if (!source && choice_.artifact) source = choose_chat_template(*choice_.artifact, name, has_tools);
  if (!source)
    return tl::unexpected(TemplateError{"ValueError", name.empty()
                                                          ? "the model has no chat template"
                                                          : "the model has no chat template named " + name});
  if (last_ && *source == last_source_) return last_;
  auto parsed = ChatTemplate::parse(*source);
  if (!parsed) return parsed;
  last_source_ = std::move(*source);
  last_ = std::move(*parsed);
  return last_;
}

tl::expected<TokenCount, TemplateError> count_conversation(const Tokenizer& tokenizer,
                                                           TemplateRenderer& renderer, Json context) {
  const Json messages = context["messages"];
  if (!context.contains("content_format")) context.set("content_format", "auto");
  const PromptGuard guard(tokenizer, context);
  context.set("messages", guard.guarded_messages(messages));
  context.set("tools", guard.guarded(context["tools"]));
  const LineAnswer rendered = renderer.render(context);
  if (!rendered) return tl::unexpected(rendered.error());
  return count_chat(tokenizer, guard.prompt_of(*(*rendered)["text"].as_string()), messages);
}

Json chat_context(Conversation conversation) {
  Json context = Json::object({{"messages", Json()}, {"tools", Json()}, {"documents", Json()}});
  if (conversation.chat.is_array())
    context.set("messages", std::move(conversation.chat));
  else
    for (const auto& [key, value] : conversation.chat.members()) context.set(key, value);
  if (!conversation.tools.is_null()) context.set("tools", std::move(conversation.tools));
  if (!context.contains("add_generation_prompt"))
    context.set("add_generation_prompt",
                conversation.add_generation_prompt && !conversation.continue_final_message);
  if (conversation.continue_final_message) context.set("continue_final_message", true);
  for (const auto& [key, value] : conversation.variables.members()) context.set(key, value);
  return context;
}

}  // namespace plimsoll::text
