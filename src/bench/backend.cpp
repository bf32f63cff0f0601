// SPDX-License-Identifier: Apache-2.0
#include "bench/backend.h"

namespace plimsoll::bench {

std::string_view default_endpoint(Backend backend) {
  return backend == Backend::kOpenaiChat ? "/v1/chat/completions" : "/v1/completions";
}

std::string request_body(const Options& options, std::span<const Message> conversation,
                         std::int64_t max_output_tokens) {
  Json body = Json::object(
      {{"model", options.served_model_name.empty() ? options.model : options.served_model_name}});
  if (options.backend == Backend::kOpenaiChat) {
    Json messages = Json::array();
    for (const Message& message : conversation)
      messages.push_back(
          Json::object({{"role", message.is_user ? "user" : "assistant"}, {"content", message.text}}));
    body.set("messages", std::move(messages));
    body.set("max_completion_tokens", max_output_tokens);
  } else {
    std::string prompt;
    for (const Message& message : conversation) prompt += message.text;
    body.set("prompt", std::move(prompt));
    body.set("max_tokens", max_output_tokens);
  }
  body.set("stream", true);
  Json stream_options = Json::object({{"include_usage", true}});
  // vLLM can say with each event how many tokens it holds; other servers may refuse the key.
  if (options.backend == Backend::kVllm) stream_options.set("continuous_usage_stats", true);
  body.set("stream_options", std::move(stream_options));
  if (options.ignore_eos) body.set("ignore_eos", true);
  if (options.extra_body.is_object())
    for (const auto& [name, value] : options.extra_body.members()) body.set(name, value);
  return dump(body);
}

}  // namespace plimsoll::bench
