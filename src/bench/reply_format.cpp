// SPDX-License-Identifier: Apache-2.0
#include "bench/reply_format.h"

#include "base/text.h"

namespace plimsoll::bench {
namespace {

// No reply is longer; sums over all requests stay far from overflow.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

std::string_view text_of(JsonView value) {
  return value.as_string().value_or(std::string_view());
}

std::optional<std::int64_t> count_of(JsonView value) {
  const auto n = value.as_integer();
  return n && *n >= 0 && *n <= kMaxTokens ? n : std::nullopt;
}

/// What the model generated of tool calls. Ollama gives arguments as an object: they are counted as their
/// JSON.
std::string call_text(JsonView calls) {
  std::string out;
  if (!calls.is_array()) return out;
  const auto visited = calls.for_each_item([&](JsonView call) -> Status {
    const JsonView function = call["function"];
    out += text_of(function["name"]);
    const JsonView arguments = function["arguments"];
    out += arguments.is_object() ? dump(arguments.to_json()) : std::string(text_of(arguments));
    return {};
  });
  static_cast<void>(visited);
  return out;
}

void read_usage(JsonView usage, ReplyEvent& event) {
  event.output_tokens = count_of(usage["completion_tokens"]);
  event.prompt_tokens = count_of(usage["prompt_tokens"]);
  event.cached_prompt_tokens = count_of(usage["prompt_tokens_details"]["cached_tokens"]);
}

void read_choice(JsonView choice, ReplyEvent& event) {
  event.tokens = static_cast<std::int64_t>(choice["token_ids"].size());
  const JsonView delta = choice["delta"];
  if (!delta.is_object()) {
    event.answer = text_of(choice["text"]);
    return;
  }
  event.answer = text_of(delta["content"]);
  event.thinking = text_of(delta["reasoning_content"]);
  if (event.thinking.empty()) event.thinking = text_of(delta["reasoning"]);
  event.called = call_text(delta["tool_calls"]);
  event.called += text_of(delta["refusal"]);
}

ReplyEvent openai_event(JsonView root) {
  ReplyEvent event;
  const JsonView choice = root["choices"].item(0);
  if (const JsonView usage = root["usage"]; usage.is_object()) {
    read_usage(usage, event);
    event.is_running_count = choice.is_object();
  }
  // Only one choice is ever asked for.
  if (choice["index"].as_integer().value_or(0) == 0) read_choice(choice, event);
  return event;
}

ReplyEvent responses_event(JsonView root) {
  ReplyEvent event;
  const std::string_view type = text_of(root["type"]);
  const std::string_view delta = text_of(root["delta"]);
  if (type == "response.output_text.delta") {
    event.answer = delta;
  } else if (type == "response.reasoning_text.delta" || type == "response.reasoning_summary_text.delta") {
    event.thinking = delta;
  } else if (type == "response.function_call_arguments.delta" || type == "response.refusal.delta") {
    event.called = delta;
  } else if (type == "response.completed" || type == "response.incomplete") {
    event.is_last = true;
    const JsonView usage = root["response"]["usage"];
    event.output_tokens = count_of(usage["output_tokens"]);
    event.prompt_tokens = count_of(usage["input_tokens"]);
    event.cached_prompt_tokens = count_of(usage["input_tokens_details"]["cached_tokens"]);
  } else {
    event.is_error = type == "error" || type == "response.failed";
  }
  return event;
}

ReplyEvent embeddings_event(JsonView root) {
  ReplyEvent event;
  read_usage(root["usage"], event);
  event.output_tokens = std::nullopt;  // there are none
  event.is_last = root["data"].item(0)["embedding"].is_array() ||
                  root["data"].item(0)["embedding"].as_string().has_value();
  return event;
}

ReplyEvent sglang_event(JsonView root) {
  ReplyEvent event;
  event.answer = text_of(root["text"]);
  event.may_be_cumulative = true;
  const JsonView meta = root["meta_info"];
  event.output_tokens = count_of(meta["completion_tokens"]);
  event.is_running_count = true;
  event.prompt_tokens = count_of(meta["prompt_tokens"]);
  event.cached_prompt_tokens = count_of(meta["cached_tokens"]);
  if (const JsonView ids = root["output_ids"]; ids.is_array())
    event.num_output_ids = static_cast<std::int64_t>(ids.size());
  event.is_error = text_of(meta["finish_reason"]["type"]) == "abort";
  return event;
}

ReplyEvent ollama_event(JsonView root) {
  ReplyEvent event;
  const JsonView message = root["message"];
  const JsonView holder = message.is_object() ? message : root;  // /api/chat, /api/generate
  event.answer = message.is_object() ? text_of(message["content"]) : text_of(root["response"]);
  event.thinking = text_of(holder["thinking"]);
  event.called = call_text(message["tool_calls"]);
  event.is_last = root["done"].as_bool().value_or(false);
  if (event.is_last) {
    event.output_tokens = count_of(root["eval_count"]);
    event.prompt_tokens = count_of(root["prompt_eval_count"]);
  }
  return event;
}

ReplyEvent tgi_event(JsonView root) {
  ReplyEvent event;
  if (const JsonView token = root["token"]; token.is_object()) {
    event.tokens = 1;
    // The end of sequence is a token that is no text of the answer.
    if (!token["special"].as_bool().value_or(false)) event.answer = text_of(token["text"]);
  }
  if (const JsonView details = root["details"]; details.is_object()) {
    event.output_tokens = count_of(details["generated_tokens"]);
    event.prompt_tokens = count_of(details["input_length"]);
  }
  event.is_last = root["generated_text"].as_string().has_value();
  return event;
}

ReplyEvent llama_cpp_event(JsonView root) {
  ReplyEvent event;
  event.answer = text_of(root["content"]);
  event.output_tokens = count_of(root["tokens_predicted"]);
  event.is_running_count = true;
  event.is_last = root["stop"].as_bool().value_or(false);
  if (event.is_last) {
    event.prompt_tokens = count_of(root["tokens_evaluated"]);
    event.cached_prompt_tokens = count_of(root["timings"]["cache_n"]);
  }
  return event;
}

ReplyEvent meaning(ReplyFormat format, JsonView root) {
  switch (format) {
    case ReplyFormat::kOpenai:
      break;
    case ReplyFormat::kResponses:
      return responses_event(root);
    case ReplyFormat::kEmbeddings:
      return embeddings_event(root);
    case ReplyFormat::kSglang:
      return sglang_event(root);
    case ReplyFormat::kOllama:
      return ollama_event(root);
    case ReplyFormat::kTgi:
      return tgi_event(root);
    case ReplyFormat::kLlamaCpp:
      return llama_cpp_event(root);
  }
  return openai_event(root);
}

}  // namespace

Framing framing(ReplyFormat format) {
  if (format == ReplyFormat::kOllama) return Framing::kLines;
  return format == ReplyFormat::kEmbeddings ? Framing::kDocument : Framing::kEventStream;
}

bool is_content_type_of(Framing framing, std::string_view given) {
  const std::string content_type = lower_ascii(given);
  const bool is_json = content_type.find("json") != content_type.npos;  // x-ndjson too
  const bool is_stream = content_type.find("event-stream") != content_type.npos;
  return content_type.empty() || (framing == Framing::kEventStream ? is_stream : is_json);
}

ReplyEvent read_event(ReplyFormat format, JsonView event) {
  ReplyEvent read = meaning(format, event);
  const JsonView error = event["error"];
  const bool is_none = error.is_null() || error.as_string() == "" || error.as_bool() == false;
  if (!is_none) read.is_error = true;
  return read;
}

}  // namespace plimsoll::bench
