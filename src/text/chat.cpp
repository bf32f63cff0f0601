// SPDX-License-Identifier: Apache-2.0
#include "text/chat.h"

#include "text/unicode.h"

namespace plimsoll::text {
namespace {

// transformers marks the end of the open message with this text and cuts the render there.
constexpr std::string_view kContinueMark = "CONTINUE_FINAL_MESSAGE_TAG ";

tl::unexpected<TemplateError> failure(std::string type, std::string message) {
  return tl::unexpected(TemplateError{std::move(type), std::move(message)});
}

tl::expected<std::string, TemplateError> joined_parts(const Json& parts) {
  std::string text;
  bool is_first = true;
  for (const Json& part : parts.items()) {
    const std::string* piece = part.as_string();
    for (const char* key : {"text", "refusal", "thinking"})
      if (!piece) piece = part[key].as_string();
    if (!piece) return failure("TypeError", "a content part of type " + dump(part["type"]) + " is no text");
    if (!is_first) text += '\n';
    is_first = false;
    text += *piece;
  }
  return text;
}

// {"function": {"arguments": "{\"a\": 1}"}} -> the object, for templates that iterate over it.
void open_arguments(Json& message) {
  if (!message["tool_calls"].is_array()) return;
  Json calls = message["tool_calls"];
  for (Json& call : calls.mutable_items()) {
    const std::string* text = call["function"]["arguments"].as_string();
    if (!text) continue;
    auto parsed = text->empty() ? Result<Json>(Json::object()) : parse_json(*text, "tool call arguments");
    if (!parsed) continue;  // what a model once wrote need not be JSON
    Json function = call["function"];
    function.set("arguments", std::move(*parsed));
    call.set("function", std::move(function));
  }
  message.set("tool_calls", std::move(calls));
}

struct Opened {
  Json messages;
  std::string text;  // of the final message
};

// Appends the mark to the text of the last message.
tl::expected<Opened, TemplateError> opened_messages(const Json& messages) {
  if (messages.size() == 0) return failure("ValueError", "there is no final message to continue");
  Opened opened{messages, {}};
  Json& last = opened.messages.mutable_items().back();
  if (const std::string* text = last["content"].as_string()) {
    opened.text = *text;
    last.set("content", opened.text + std::string(kContinueMark));
    return opened;
  }
  Json parts = last["content"];
  for (std::size_t i = parts.size(); i-- > 0;) {
    Json& part = parts.mutable_items()[i];
    const std::string* text = part["text"].as_string();
    if (!text) continue;
    opened.text = *text;
    part.set("text", opened.text + std::string(kContinueMark));
    last.set("content", std::move(parts));
    return opened;
  }
  return failure("ValueError",
                 "continue_final_message is set but we could not find any text to continue in the "
                 "final message!");
}

tl::expected<std::string, TemplateError> cut_at_mark(std::string text, const std::string& final_text) {
  const std::string_view mark = strip(kContinueMark, Side::kBoth);
  const std::size_t at = text.rfind(mark);
  if (at == std::string::npos || text.find(strip(final_text, Side::kBoth)) == std::string::npos)
    return failure(
        "ValueError",
        "continue_final_message is set but the final message does not appear in the chat after applying "
        "the chat template!");
  const bool keeps_blanks = std::string_view(text).substr(at).starts_with(kContinueMark);
  text.resize(at);
  return keeps_blanks ? text : std::string(strip(text, Side::kRight));
}

}  // namespace

tl::expected<Json, TemplateError> normalized_messages(const Json& messages, bool takes_content_parts) {
  Json out = messages;
  if (!out.is_array()) return out;
  for (Json& message : out.mutable_items()) {
    if (!message.is_object()) continue;
    const Json& content = message["content"];
    if (content.is_null()) {
      message.set("content", "");
    } else if (content.is_array() && !takes_content_parts) {
      auto text = joined_parts(content);
      if (!text) return tl::unexpected(text.error());
      message.set("content", std::move(*text));
    }
    open_arguments(message);
  }
  return out;
}

tl::expected<std::string, TemplateError> render_chat(const ChatTemplate& chat_template, const Json& context,
                                                     const ChatOptions& options) {
  if (!options.normalize_content && !options.continue_final_message)
    return chat_template.render(context, options.now);
  Json prepared = context;
  std::string final_text;
  if (options.normalize_content) {
    auto messages = normalized_messages(prepared["messages"], chat_template.takes_content_parts());
    if (!messages) return tl::unexpected(messages.error());
    prepared.set("messages", std::move(*messages));
  }
  if (options.continue_final_message) {
    auto opened = opened_messages(prepared["messages"]);
    if (!opened) return tl::unexpected(opened.error());
    prepared.set("messages", std::move(opened->messages));
    final_text = std::move(opened->text);
  }
  auto text = chat_template.render(prepared, options.now);
  if (!text || !options.continue_final_message) return text;
  return cut_at_mark(std::move(*text), final_text);
}

std::optional<std::string> choose_chat_template(const artifact::Artifact& artifact, std::string_view name,
                                                bool has_tools) {
  if (name.empty() && has_tools)
    if (auto source = chat_template_source(artifact, "tool_use")) return source;
  return chat_template_source(artifact, name);
}

std::string special_token_text(const artifact::Artifact& artifact, std::string_view name) {
  if (artifact.form() == artifact::Form::kGguf) {
    const Json& metadata = artifact.config();
    const auto id = metadata["tokenizer.ggml." + std::string(name) + "_id"].as_integer();
    const auto& tokens = metadata["tokenizer.ggml.tokens"].items();
    if (!id || *id < 0 || *id >= static_cast<std::int64_t>(tokens.size())) return {};
    const std::string* text = tokens[static_cast<std::size_t>(*id)].as_string();
    return text ? *text : std::string();
  }
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const Json& token = artifact.json_file(file)[name];
    if (const std::string* text = token.as_string()) return *text;
    if (const std::string* text = token["content"].as_string()) return *text;
  }
  return {};
}

Error to_error(const TemplateError& error) {
  return Error{error.type == "LimitError" ? ErrorCode::kUnsupported : ErrorCode::kMalformed,
               "rendering the chat template: " + error.type + ": " + error.message,
               error.line > 0 ? "chat template: line " + std::to_string(error.line) +
                                    (error.column > 0 ? ", column " + std::to_string(error.column) : "")
                              : "chat template",
               ""};
}

}  // namespace plimsoll::text
