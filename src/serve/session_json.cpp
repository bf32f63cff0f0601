// SPDX-License-Identifier: Apache-2.0
// The writing half of Session: envelopes, choices and chunks.
#include "serve/session.h"

namespace plimsoll::serve {

Json Session::envelope(bool is_chunk) const {
  const char* object = !is_chat() ? "text_completion"
                       : is_chunk ? "chat.completion.chunk"
                                  : "chat.completion";
  return Json::object(
      {{"id", settings_.id}, {"object", object}, {"created", settings_.created}, {"model", request_.model}});
}

Json Session::usage() const {
  std::int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  for (const Prompt& prompt : request_.prompts) prompt_tokens += static_cast<std::int64_t>(prompt.ids.size());
  for (std::size_t index = 0; index < choices_.size(); ++index) {
    completion_tokens += static_cast<std::int64_t>(choices_[index].ids.size());
    // A prompt counts once; its other choices find what the first one computed.
    if (index % static_cast<std::size_t>(request_.n) == 0) cached_tokens += choices_[index].cached_tokens;
  }
  return usage_json(prompt_tokens, completion_tokens, cached_tokens);
}

void Session::write_event(const Json& event) {
  responder_->write("data: " + dump(event) + "\n\n");
}

/// Opens the stream with the first token, never before it: clients time the first chunk as the first token.
void Session::begin_choice(std::size_t index) {
  if (!has_stream_) {
    has_stream_ = true;
    http::Headers headers = settings_.headers;
    headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
    headers.emplace_back("Cache-Control", "no-cache");
    responder_->begin_stream(200, std::move(headers));
  }
  choices_[index].has_begun = true;
  if (!is_chat()) return;
  const auto role_chunk = [&](Json delta, bool is_first) {
    Json event = envelope(true);
    Json choice = Json::object(
        {{"index", index}, {"delta", std::move(delta)}, {"logprobs", nullptr}, {"finish_reason", nullptr}});
    event.set("choices", Json(Json::Array{std::move(choice)}));
    if (is_first && request_.answer.return_token_ids)
      event.set("prompt_token_ids", ids_json(request_.prompts[choices_[index].prompt].ids));
    if (request_.answer.continuous_usage) event.set("usage", usage());
    write_event(event);
  };
  role_chunk(Json::object({{"role", "assistant"}, {"content", ""}}), true);
  if (request_.answer.echo && !request_.echo_text.empty())
    role_chunk(Json::object({{"content", request_.echo_text}}), false);
}

void Session::write_chunk(std::size_t index, Delta delta) {
  if (!request_.answer.is_stream) return;
  Choice& choice = choices_[index];
  const bool is_first = !choice.has_begun;
  if (is_first) begin_choice(index);
  Json body = Json::object({{"index", index}});
  if (is_chat()) {
    body.set("delta", Json::object({{"content", std::move(delta.text)}}));
  } else {
    if (is_first && request_.answer.echo) {
      delta.text = request_.prompts[choice.prompt].text + delta.text;
      if (delta.logprobs.is_null() && request_.answer.wants_logprobs) delta.logprobs = echo_logprobs(choice);
    }
    body.set("text", std::move(delta.text));
  }
  body.set("logprobs", std::move(delta.logprobs));
  body.set("finish_reason", choice.finish);
  if (choice.finish) body.set("stop_reason", choice.stop_reason);
  if (request_.answer.return_token_ids) {
    if (is_first && !is_chat()) body.set("prompt_token_ids", ids_json(request_.prompts[choice.prompt].ids));
    body.set("token_ids", delta.id ? ids_json({*delta.id}) : Json::array());
  }
  Json event = envelope(true);
  event.set("choices", Json(Json::Array{std::move(body)}));
  if (request_.answer.continuous_usage) event.set("usage", usage());
  write_event(event);
}

/// Puts the prompt's logprobs in front of a choice's lists; returns them when nothing was generated.
Json Session::echo_logprobs(Choice& choice) {
  const auto& ids = request_.prompts[choice.prompt].ids;
  for (std::size_t i = 0; i < ids.size() && i < choice.prompt_logprobs.size(); ++i) {
    const auto& logprob = choice.prompt_logprobs[i];
    if (logprob)
      choice.completion_logprobs.add(*logprob, writer_);
    else
      choice.completion_logprobs.add_first(ids[i], writer_);
  }
  return request_.answer.drops_generated ? choice.completion_logprobs.take() : Json();
}

Json Session::chat_choice(std::size_t index) {
  Choice& choice = choices_[index];
  const std::string content = (request_.answer.echo ? request_.echo_text : "") + choice.content;
  Json result = Json::object(
      {{"index", index},
       {"message", Json::object({{"role", "assistant"}, {"content", content}, {"refusal", nullptr}})},
       {"logprobs", request_.answer.wants_logprobs
                        ? Json::object({{"content", std::move(choice.chat_logprobs)}})
                        : Json()},
       {"finish_reason", choice.finish},
       {"stop_reason", choice.stop_reason}});
  if (request_.answer.return_token_ids) result.set("token_ids", ids_json(choice.ids));
  return result;
}

Json Session::completion_choice(std::size_t index) {
  Choice& choice = choices_[index];
  const Prompt& prompt = request_.prompts[choice.prompt];
  Json logprobs;
  if (request_.answer.wants_logprobs)
    logprobs = request_.answer.drops_generated ? echo_logprobs(choice) : choice.completion_logprobs.take();
  Json result = Json::object({{"index", index},
                              {"text", (request_.answer.echo ? prompt.text : "") + choice.content},
                              {"logprobs", std::move(logprobs)},
                              {"finish_reason", choice.finish},
                              {"stop_reason", choice.stop_reason}});
  if (request_.answer.wants_prompt_logprobs)
    result.set("prompt_logprobs", prompt_logprobs_json(choice.prompt_logprobs, writer_));
  if (request_.answer.return_token_ids) {
    result.set("token_ids", ids_json(choice.ids));
    result.set("prompt_token_ids", ids_json(prompt.ids));
  }
  return result;
}

Json Session::full_answer() {
  Json answer = envelope(false);
  Json choices = Json::array();
  for (std::size_t index = 0; index < choices_.size(); ++index)
    choices.push_back(is_chat() ? chat_choice(index) : completion_choice(index));
  answer.set("choices", std::move(choices));
  answer.set("usage", usage());
  answer.set("system_fingerprint", nullptr);
  if (is_chat()) {
    if (request_.answer.wants_prompt_logprobs)
      answer.set("prompt_logprobs", prompt_logprobs_json(choices_.front().prompt_logprobs, writer_));
    if (request_.answer.return_token_ids)
      answer.set("prompt_token_ids", ids_json(request_.prompts.front().ids));
  }
  return answer;
}

}  // namespace plimsoll::serve
