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

tl::unexpected<MessageError> refused(const std::string& place, const char* reason) {
  return tl::unexpected(MessageError{place + reason, place});
}

std::string element(const std::string& place, std::size_t index) {
  return place + "[" + std::to_string(index) + "]";
}

tl::expected<std::string, MessageError> part_text(const Json& part, const std::string& place) {
  if (const std::string* text = part.as_string()) return *text;
  const std::string* type = part["type"].as_string();
  if (!type) return refused(place, ": a content part is an object with a type");
  static constexpr struct {
    std::string_view type, key;
  } kTexts[] = {{"text", "text"},
                {"input_text", "text"},
                {"output_text", "text"},
                {"refusal", "refusal"},
                {"thinking", "thinking"}};
  for (const auto& row : kTexts) {
    if (*type != row.type) continue;
    if (const std::string* text = part[row.key].as_string()) return *text;
    return refused(place + "." + std::string(row.key), " must be a string");
  }
  const std::string here = place + "." + *type;
  return tl::unexpected(MessageError{here + ": this model takes text only, not " + *type, here});
}

tl::expected<Json, MessageError> normalized_content(const Json& content, bool takes_parts,
                                                    const std::string& place) {
  if (content.is_null()) return Json("");
  if (content.is_string()) return content;
  if (!content.is_array()) return refused(place, " must be a string or a list of parts");
  Json parts = Json::array();
  std::string joined;
  for (std::size_t i = 0; i < content.size(); ++i) {
    auto text = part_text(content.items()[i], element(place, i));
    if (!text) return tl::unexpected(std::move(text).error());
    if (takes_parts) {
      parts.push_back(Json::object({{"type", "text"}, {"text", std::move(*text)}}));
    } else {
      if (i > 0) joined += '\n';
      joined += *text;
    }
  }
  return takes_parts ? parts : Json(std::move(joined));
}

// {"function": {"arguments": "{\"a\": 1}"}} -> the object, for templates that iterate over it.
tl::expected<Json, MessageError> opened_calls(const Json& calls, const std::string& place) {
  if (!calls.is_array()) return refused(place, " must be a list");
  Json result = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    Json call = calls.items()[i];
    Json function = call["function"];
    const std::string here = element(place, i) + ".function";
    if (!function["name"].is_string()) return refused(here + ".name", " must be a string");
    if (const std::string* arguments = function["arguments"].as_string()) {
      auto parsed = parse_json(arguments->empty() ? "{}" : *arguments, "arguments");
      if (!parsed) return refused(here + ".arguments", " is not JSON");
      function.set("arguments", std::move(*parsed));
    }
    call.set("function", std::move(function));
    result.push_back(std::move(call));
  }
  return result;
}

tl::expected<Json, MessageError> normalized_message(const Json& message, bool takes_parts,
                                                    const std::string& place) {
  if (!message.is_object()) return refused(place, " must be an object");
  Json result = Json::object();
  if (message.contains("role")) result.set("role", message["role"]);
  auto content = normalized_content(message["content"], takes_parts, place + ".content");
  if (!content) return tl::unexpected(std::move(content).error());
  result.set("content", std::move(*content));
  if (message["role"] == Json("assistant")) {
    if (!message["tool_calls"].is_null()) {
      auto calls = opened_calls(message["tool_calls"], place + ".tool_calls");
      if (!calls) return tl::unexpected(std::move(calls).error());
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

struct Opened {
  Json messages;
  std::string text;  // of the final message
};

// Appends the mark to the text of the last message.
tl::expected<Opened, TemplateError> opened_messages(const Json& messages) {
  if (!messages.is_array() || messages.size() == 0)
    return failure("ValueError", "there is no final message to continue");
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

tl::expected<Json, MessageError> normalized_messages(const Json& messages, bool takes_content_parts) {
  if (!messages.is_array()) return refused("messages", " must be a list");
  Json result = Json::array();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    auto message = normalized_message(messages.items()[i], takes_content_parts, element("messages", i));
    if (!message) return tl::unexpected(std::move(message).error());
    result.push_back(std::move(*message));
  }
  return result;
}

tl::expected<std::string, TemplateError> render_chat(const ChatTemplate& chat_template, const Json& context,
                                                     const ChatOptions& options) {
  if (!options.normalize_content && !options.continue_final_message)
    return chat_template.render(context, options.now);
  Json prepared = context;
  std::string final_text;
  if (options.normalize_content) {
    auto messages = normalized_messages(prepared["messages"], chat_template.takes_content_parts());
    if (!messages) return failure("TypeError", messages.error().message);
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

std::string place_in_template(const TemplateError& error) {
  if (error.line <= 0) return {};
  return "line " + std::to_string(error.line) +
         (error.column > 0 ? ", column " + std::to_string(error.column) : "");
}

Error to_error(const TemplateError& error) {
  const std::string place = place_in_template(error);
  return Error{error.type == "LimitError" ? ErrorCode::kUnsupported : ErrorCode::kMalformed,
               "rendering the chat template: " + error.type + ": " + error.message,
               place.empty() ? "chat template" : "chat template: " + place, ""};
}

}  // namespace plimsoll::text
