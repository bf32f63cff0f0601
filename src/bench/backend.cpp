// SPDX-License-Identifier: Apache-2.0
#include "bench/backend.h"

#include <algorithm>
#include <array>

namespace plimsoll::bench {
namespace {

struct BackendRow {
  Backend backend;
  std::string_view name;
  std::string_view endpoint;
  ReplyFormat format;
  bool knows_ignore_eos;
};

// Source: docs/formats/load_backends.md.
constexpr std::array<BackendRow, 9> kBackends = {{
    {Backend::kOpenai, "openai", "/v1/completions", ReplyFormat::kOpenai, true},
    {Backend::kOpenaiChat, "openai-chat", "/v1/chat/completions", ReplyFormat::kOpenai, true},
    {Backend::kVllm, "vllm", "/v1/completions", ReplyFormat::kOpenai, true},
    {Backend::kOpenaiResponses, "openai-responses", "/v1/responses", ReplyFormat::kResponses, true},
    {Backend::kOpenaiEmbeddings, "openai-embeddings", "/v1/embeddings", ReplyFormat::kEmbeddings, false},
    {Backend::kSglang, "sglang", "/generate", ReplyFormat::kSglang, true},
    {Backend::kOllama, "ollama", "/api/chat", ReplyFormat::kOllama, false},
    {Backend::kTgi, "tgi", "/generate_stream", ReplyFormat::kTgi, false},
    {Backend::kLlamaCpp, "llama.cpp", "/completion", ReplyFormat::kLlamaCpp, true},
}};

const BackendRow& row_of(Backend backend) {
  for (const BackendRow& row : kBackends)
    if (row.backend == backend) return row;
  return kBackends.front();
}

const std::string& asked_model(const Options& options) {
  return options.served_model_name.empty() ? options.model : options.served_model_name;
}

/// vLLM's names of the sampling options.
constexpr std::string_view kSamplingNames[] = {
    "temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"};

bool is_sampling_name(std::string_view name) {
  return std::find(std::begin(kSamplingNames), std::end(kSamplingNames), name) != std::end(kSamplingNames);
}

/// What the format calls a sampling option; empty where it has none.
std::string_view native_name(ReplyFormat format, std::string_view name) {
  const bool is_ggml = format == ReplyFormat::kOllama || format == ReplyFormat::kLlamaCpp;
  if (is_ggml && name == "repetition_penalty") return "repeat_penalty";
  if (format == ReplyFormat::kTgi && (name == "min_p" || name == "presence_penalty")) return {};
  return format == ReplyFormat::kEmbeddings ? std::string_view() : name;
}

/// The member of a request that holds its sampling options; empty: the request itself.
std::string_view sampling_place(ReplyFormat format) {
  if (format == ReplyFormat::kSglang) return "sampling_params";
  if (format == ReplyFormat::kOllama) return "options";
  return format == ReplyFormat::kTgi ? "parameters" : "";
}

/// Sets one option where the format has it.
void set_sampling(Json& body, ReplyFormat format, std::string_view name, Json value) {
  const std::string_view place = sampling_place(format);
  if (place.empty()) {
    body.set(name, std::move(value));
    return;
  }
  Json held = body[place];
  held.set(name, std::move(value));
  body.set(place, std::move(held));
}

/// The caller's own members over those of the request; in an object that both have, member by member.
void add_members(Json& body, ReplyFormat format, const Json& extra) {
  for (const auto& [name, value] : extra.members()) {
    if (is_sampling_name(name)) {
      set_sampling(body, format, native_name(format, name), value);
    } else if (value.is_object() && name == sampling_place(format)) {
      for (const auto& [inner, inner_value] : value.members()) set_sampling(body, format, inner, inner_value);
    } else {
      body.set(name, value);
    }
  }
}

std::string joined(std::span<const Message> conversation) {
  std::string text;
  for (const Message& message : conversation) text += message.text;
  return text;
}

Json messages(std::span<const Message> conversation) {
  Json list = Json::array();
  for (const Message& message : conversation)
    list.push_back(
        Json::object({{"role", message.is_user ? "user" : "assistant"}, {"content", message.text}}));
  return list;
}

Json openai_body(const Options& options, std::span<const Message> conversation, std::int64_t tokens) {
  Json body = Json::object({{"model", asked_model(options)}});
  if (options.backend == Backend::kOpenaiChat) {
    body.set("messages", messages(conversation));
    body.set("max_completion_tokens", tokens);
  } else {
    body.set("prompt", joined(conversation));
    body.set("max_tokens", tokens);
  }
  body.set("stream", true);
  Json stream_options = Json::object({{"include_usage", true}});
  // vLLM can say with each event how many tokens it holds; other servers may refuse the key.
  if (options.backend == Backend::kVllm) stream_options.set("continuous_usage_stats", true);
  body.set("stream_options", std::move(stream_options));
  return body;
}

Json responses_body(const Options& options, std::span<const Message> conversation, std::int64_t tokens) {
  return Json::object(
      {{"model", asked_model(options)},
       {"input", conversation.size() == 1 ? Json(conversation.front().text) : messages(conversation)},
       {"max_output_tokens", tokens},
       {"stream", true},
       {"store", false}});  // a server that keeps replies would grow with the run
}

Json sglang_body(std::span<const Message> conversation, std::int64_t tokens) {
  return Json::object({{"text", joined(conversation)},
                       {"sampling_params", Json::object({{"max_new_tokens", tokens}})},
                       {"stream", true}});
}

Json ollama_body(const Options& options, std::span<const Message> conversation, std::int64_t tokens) {
  Json body = Json::object({{"model", asked_model(options)}});
  if (options.endpoint.ends_with("/api/generate"))
    body.set("prompt", joined(conversation));
  else
    body.set("messages", messages(conversation));
  body.set("stream", true);
  body.set("options", Json::object({{"num_predict", tokens}}));
  return body;
}

Json tgi_body(std::span<const Message> conversation, std::int64_t tokens) {
  return Json::object({{"inputs", joined(conversation)},
                       {"parameters", Json::object({{"max_new_tokens", tokens}, {"details", true}})},
                       {"stream", true}});
}

Json body_of(const Options& options, std::span<const Message> conversation, std::int64_t tokens) {
  switch (row_of(options.backend).format) {
    case ReplyFormat::kOpenai:
      break;
    case ReplyFormat::kResponses:
      return responses_body(options, conversation, tokens);
    case ReplyFormat::kEmbeddings:
      return Json::object({{"model", asked_model(options)}, {"input", joined(conversation)}});
    case ReplyFormat::kSglang:
      return sglang_body(conversation, tokens);
    case ReplyFormat::kOllama:
      return ollama_body(options, conversation, tokens);
    case ReplyFormat::kTgi:
      return tgi_body(conversation, tokens);
    case ReplyFormat::kLlamaCpp:
      return Json::object({{"prompt", joined(conversation)}, {"n_predict", tokens}, {"stream", true}});
  }
  return openai_body(options, conversation, tokens);
}

}  // namespace

std::string_view to_string(Backend backend) {
  return row_of(backend).name;
}
std::optional<Backend> backend_from(std::string_view name) {
  for (const BackendRow& row : kBackends)
    if (row.name == name) return row.backend;
  return std::nullopt;
}
std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendRow& row : kBackends) names.emplace_back(row.name);
  return names;
}

std::string_view default_endpoint(Backend backend) {
  return row_of(backend).endpoint;
}
ReplyFormat reply_format(Backend backend) {
  return row_of(backend).format;
}
std::string_view accepted_type(Backend backend) {
  switch (framing(reply_format(backend))) {
    case Framing::kEventStream:
      break;
    case Framing::kLines:
      return "application/x-ndjson";
    case Framing::kDocument:
      return "application/json";
  }
  return "text/event-stream";
}
bool is_pooling(Backend backend) {
  return reply_format(backend) == ReplyFormat::kEmbeddings;
}

Status check_backend(const Options& options) {
  const BackendRow& row = row_of(options.backend);
  if (options.ignore_eos && !row.knows_ignore_eos)
    return fail(
        ErrorCode::kUsage,
        std::string("--backend ") + std::string(row.name) + " has no way to ask for replies of full length",
        "--ignore-eos", "leave the flag out; replies may then be shorter than asked");
  for (const auto& [name, value] : options.extra_body.members())
    if (is_sampling_name(name) && native_name(row.format, name).empty())
      return fail(ErrorCode::kUsage, "--backend " + std::string(row.name) + " has no option " + name,
                  "--extra-body and the sampling flags", "leave it out");
  return {};
}

std::string request_body(const Options& options, std::span<const Message> conversation,
                         std::int64_t max_output_tokens) {
  const BackendRow& row = row_of(options.backend);
  Json body = body_of(options, conversation, max_output_tokens);
  if (options.ignore_eos) set_sampling(body, row.format, "ignore_eos", true);
  add_members(body, row.format, options.extra_body);
  return dump(body);
}

}  // namespace plimsoll::bench
