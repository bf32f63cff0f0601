// SPDX-License-Identifier: Apache-2.0
#include "serve/chat.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat.h"
#include "text/prompt_guard.h"

namespace plimsoll::serve {
namespace {

/// What of a message only the API asks for; templates may do without.
std::optional<ApiError> missing_field(const Json& message, const std::string& place) {
  const std::string* role = message["role"].as_string();
  if (!role) return bad_request(place + ".role must be a string", place + ".role");
  if (!message.contains("content") && *role != "assistant")
    return bad_request(place + ".content: field required", place + ".content");
  return std::nullopt;
}

void check_tools(Fields& fields) {
  const Json& tools = fields.raw("tools");
  if (!tools.is_null() && !tools.is_array()) return fields.fault("tools", "tools must be a list");
  std::vector<std::string> names;
  for (const Json& tool : tools.items()) {
    const std::string* name = tool["function"]["name"].as_string();
    if (!tool["type"].is_string() || *tool["type"].as_string() != "function" || !name)
      return fields.fault("tools", "each tool must be {\"type\":\"function\",\"function\":{\"name\":…}}");
    names.push_back(*name);
  }
  const Json& choice = fields.raw("tool_choice");
  if (choice.is_null()) return;
  if (const std::string* word = choice.as_string()) {
    if (*word == "none" || *word == "auto") return;
    if (*word != "required")
      return fields.fault("tool_choice", "tool_choice must be none, auto, required or a named function");
    if (names.empty()) return fields.fault("tool_choice", "tool_choice is set, but tools is empty");
  } else {
    const std::string* name = choice["function"]["name"].as_string();
    if (!name) return fields.fault("tool_choice", "tool_choice must name a function");
    if (std::find(names.begin(), names.end(), *name) == names.end())
      return fields.fault("tool_choice",
                          fmt::format("tool_choice names `{}`, which is not among tools", *name));
  }
  fields.fault("tool_choice", "tool_choice that forces a call is not supported by this server; use auto");
}

/// Some models bring a template of its own for conversations with tools.
const std::shared_ptr<const text::ChatTemplate>& template_for(Fields& fields, const ModelContext& context) {
  return context.tool_template && fields.raw("tools").size() > 0 ? context.tool_template
                                                                 : context.chat_template;
}

/// The variables of the template, as transformers names them.
Json template_variables(Fields& fields, const ModelContext& context, const text::PromptGuard* guard,
                        Json messages) {
  const auto guarded = [&](const Json& value) { return guard ? guard->guarded(value) : value; };
  Json variables =
      Json::object({{"messages", std::move(messages)},
                    {"tools", fields.raw("tools").size() > 0 ? guarded(fields.raw("tools")) : Json()},
                    {"documents", guarded(fields.raw("documents"))},
                    {"bos_token", context.bos_token},
                    {"eos_token", context.eos_token}});
  if (fields.has("reasoning_effort")) variables.set("reasoning_effort", fields.raw("reasoning_effort"));
  const Json& arguments = fields.raw("chat_template_kwargs");
  if (!arguments.is_null() && !arguments.is_object())
    fields.fault("chat_template_kwargs", "chat_template_kwargs must be an object");
  for (const auto& [name, value] : arguments.members()) {
    if (name == "messages" || name == "tools" || name == "chat_template")
      fields.fault("chat_template_kwargs", fmt::format("chat_template_kwargs cannot replace {}", name));
    else
      variables.set(name, value);
  }
  return variables;
}

/// Renders the checked messages; the error is the template's own.
ApiResult<std::string> render(Fields& fields, const ModelContext& context, const text::PromptGuard* guard,
                              Json messages) {
  const bool adds_prompt = fields.boolean("add_generation_prompt").value_or(true);
  const bool continues = fields.boolean("continue_final_message").value_or(false);
  if (continues && fields.boolean("add_generation_prompt").value_or(false))
    return refuse(bad_request("add_generation_prompt and continue_final_message cannot both be true",
                              "continue_final_message"));
  Json variables = template_variables(fields, context, guard, std::move(messages));
  variables.set("add_generation_prompt", adds_prompt && !continues);
  if (fields.error()) return refuse(*fields.error());
  text::ChatOptions options;
  options.continue_final_message = continues;
  auto rendered = text::render_chat(*template_for(fields, context), variables, options);
  if (rendered) return std::move(*rendered);
  const text::TemplateError& error = rendered.error();
  const std::string place = text::place_in_template(error);
  const std::string message = guard ? guard->prompt_of(error.message).text : error.message;
  return refuse(bad_request(fmt::format("the chat template refuses these messages: {}: {}{}", error.type,
                                        message, place.empty() ? "" : " (" + place + ")"),
                            "messages"));
}

}  // namespace

ApiResult<Json> normalise_messages(const Json& messages, bool takes_parts) {
  auto normalized = text::normalized_messages(messages, takes_parts);
  if (!normalized) return refuse(bad_request(normalized.error().message, normalized.error().place));
  if (messages.size() == 0) return refuse(bad_request("messages must hold at least one message", "messages"));
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (auto missing = missing_field(messages.items()[i], fmt::format("messages[{}]", i)))
      return refuse(std::move(*missing));
  return std::move(*normalized);
}

std::string message_text(const Json& message) {
  const Json& content = message["content"];
  if (const std::string* text = content.as_string()) return *text;
  std::string joined;
  for (const Json& part : content.items()) {
    if (!joined.empty()) joined += '\n';
    if (const std::string* text = part["text"].as_string()) joined += *text;
  }
  return joined;
}

Prompt read_chat_prompt(Fields& fields, const ModelContext& context) {
  Prompt prompt;
  check_tools(fields);
  if (!fields.has("messages")) fields.fault("messages", "messages: field required");
  if (!context.tokenizer)
    fields.fault("messages", "this model has no tokenizer: use /v1/completions with token ids");
  else if (!template_for(fields, context))
    fields.fault("messages", context.template_problem.empty()
                                 ? "this model has no chat template; serve it with --chat-template FILE"
                                 : context.template_problem);
  else if (!context.tool_template_problem.empty() && fields.raw("tools").size() > 0)
    fields.fault("tools", context.tool_template_problem);
  const auto& chat_template = template_for(fields, context);
  const bool takes_parts = chat_template && chat_template->takes_content_parts();
  auto messages = normalise_messages(fields.raw("messages"), takes_parts);
  if (!messages) fields.fault(std::move(messages).error());
  if (fields.error()) return prompt;
  // What users write is text, also where it spells a special token, unless the request says otherwise.
  std::optional<text::PromptGuard> guard;
  if (!fields.boolean("parse_special").value_or(false)) {
    const Json variables(Json::Array{*messages, fields.raw("tools"), fields.raw("documents"),
                                     fields.raw("chat_template_kwargs")});
    guard.emplace(*context.tokenizer, variables);
    messages = guard->guarded_messages(*messages);
  }
  auto rendered = render(fields, context, guard ? &*guard : nullptr, std::move(*messages));
  if (!rendered) {
    fields.fault(std::move(rendered).error());
    return prompt;
  }
  const text::PromptGuard::Prompt guarded =
      guard ? guard->prompt_of(*rendered) : text::PromptGuard::Prompt{std::move(*rendered), {}, true};
  // The template prints BOS itself, so it is not added again unless asked.
  const bool adds_special = fields.boolean("add_special_tokens").value_or(false);
  prompt.ids = context.tokenizer->encode(guarded.text, {.add_special_tokens = adds_special,
                                                        .parse_special = guarded.parse_special,
                                                        .barriers = guarded.barriers});
  prompt.text = guarded.text;
  return prompt;
}

}  // namespace plimsoll::serve
