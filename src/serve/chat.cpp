// SPDX-License-Identifier: Apache-2.0
#include "serve/chat.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/chat.h"
#include "text/prompt_guard.h"

namespace plimsoll::serve {
namespace {

/// Text of one content part, or a 400 for a kind that a text model does not take.
ApiResult<std::string> part_text(const Json& part, const std::string& place) {
  if (const std::string* text = part.as_string()) return *text;
  const std::string* type = part["type"].as_string();
  if (!type) return refuse(bad_request(place + ": a content part is an object with a type", place));
  if (*type == "text" || *type == "input_text" || *type == "output_text") {
    if (const std::string* text = part["text"].as_string()) return *text;
    return refuse(bad_request(place + ".text must be a string", place + ".text"));
  }
  if (*type == "refusal" && part["refusal"].is_string()) return *part["refusal"].as_string();
  const std::string param = place + "." + *type;
  return refuse(bad_request(fmt::format("{}: this model takes text only, not {}", param, *type), param));
}

ApiResult<Json> normalise_content(const Json& content, bool takes_parts, const std::string& place) {
  if (content.is_null()) return Json("");
  if (content.is_string()) return content;
  if (!content.is_array()) return refuse(bad_request(place + " must be a string or a list of parts", place));
  Json parts = Json::array();
  std::string joined;
  for (std::size_t i = 0; i < content.size(); ++i) {
    auto text = part_text(content.items()[i], fmt::format("{}[{}]", place, i));
    if (!text) return refuse(std::move(text).error());
    if (takes_parts) {
      parts.push_back(Json::object({{"type", "text"}, {"text", *text}}));
    } else {
      if (i > 0) joined += '\n';
      joined += *text;
    }
  }
  return takes_parts ? parts : Json(std::move(joined));
}

/// Templates iterate over the arguments: the JSON text that the API carries is parsed for them.
ApiResult<Json> normalise_tool_calls(const Json& calls, const std::string& place) {
  if (!calls.is_array()) return refuse(bad_request(place + " must be a list", place));
  Json result = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Json call = calls.items()[i];
    Json function = call["function"];
    const std::string here = fmt::format("{}[{}].function", place, i);
    if (!function["name"].is_string())
      return refuse(bad_request(here + ".name must be a string", here + ".name"));
    if (const std::string* arguments = function["arguments"].as_string()) {
      auto parsed = parse_json(arguments->empty() ? "{}" : *arguments, "arguments");
      if (!parsed) return refuse(bad_request(here + ".arguments is not JSON", here + ".arguments"));
      function.set("arguments", std::move(*parsed));
    }
    call.set("function", std::move(function));
    result.push_back(std::move(call));
  }
  return result;
}

ApiResult<Json> normalise_message(const Json& message, bool takes_parts, const std::string& place) {
  if (!message.is_object()) return refuse(bad_request(place + " must be an object", place));
  const std::string* role = message["role"].as_string();
  if (!role) return refuse(bad_request(place + ".role must be a string", place + ".role"));
  auto content = normalise_content(message["content"], takes_parts, place + ".content");
  if (!content) return refuse(std::move(content).error());
  if (!message.contains("content") && *role != "assistant")
    return refuse(bad_request(place + ".content: field required", place + ".content"));
  Json result = Json::object({{"role", *role}, {"content", std::move(*content)}});
  if (*role == "assistant") {
    if (!message["tool_calls"].is_null()) {
      auto calls = normalise_tool_calls(message["tool_calls"], place + ".tool_calls");
      if (!calls) return refuse(std::move(calls).error());
      result.set("tool_calls", std::move(*calls));
    }
    const Json& reasoning = message[message["reasoning"].is_string() ? "reasoning" : "reasoning_content"];
    if (reasoning.is_string()) {
      result.set("reasoning", reasoning);
      result.set("reasoning_content", reasoning);
    }
  }
  for (const char* key : {"name", "tool_call_id"})
    if (message[key].is_string()) result.set(key, message[key]);
  return result;
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

std::string special_text(const ModelContext& context, std::optional<TokenId> id) {
  return id ? context.tokenizer->token_text(*id).value_or("") : "";
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
                    {"bos_token", special_text(context, context.tokenizer->bos())},
                    {"eos_token", special_text(context, context.tokenizer->eos())}});
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
  return refuse(
      bad_request(fmt::format("the chat template refuses these messages: {}: {} (line {})",
                              rendered.error().type, rendered.error().message, rendered.error().line),
                  "messages"));
}

}  // namespace

ApiResult<Json> normalise_messages(const Json& messages, bool takes_parts) {
  if (!messages.is_array()) return refuse(bad_request("messages must be a list", "messages"));
  if (messages.size() == 0) return refuse(bad_request("messages must hold at least one message", "messages"));
  Json result = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto message = normalise_message(messages.items()[i], takes_parts, fmt::format("messages[{}]", i));
    if (!message) return refuse(std::move(message).error());
    result.push_back(std::move(*message));
  }
  return result;
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
