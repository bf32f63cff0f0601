// SPDX-License-Identifier: Apache-2.0
// How does one generation request become an answer? Submits a job per prompt and choice, gathers their tokens
// and writes one JSON object or an event stream. Owned by its jobs and so alive until the last one ends; the
// engine loop's thread alone changes it after start().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/http.h"
#include "serve/answer_json.h"
#include "serve/choice_text.h"
#include "serve/engine_loop.h"
#include "serve/request.h"

namespace plimsoll::serve {

/// What a session needs beside its request.
struct SessionSettings {
  std::string id;            // chatcmpl-…, cmpl-…
  std::int64_t created = 0;  // seconds since 1970
  http::Headers headers;     // of every answer
  /// The request fails after so many tokens: fault injection for tests of clients.
  std::optional<std::int64_t> fail_after_tokens = {};
};

class Session : public JobSink, public std::enable_shared_from_this<Session> {
 public:
  Session(GenerationRequest request, const ModelContext& context, EngineLoop& loop,
          std::shared_ptr<http::Responder> responder, SessionSettings settings);

  /// Submits all jobs; answers at once when they are refused. A peer that closes cancels them.
  void start();

  void on_output(Ticket ticket, const engine::Output& output) override;
  void on_refused(Ticket ticket, const ApiError& error) override;

 private:
  struct Choice {
    Choice(std::size_t of_prompt, ChoiceText choice_text) : prompt(of_prompt), text(std::move(choice_text)) {}
    std::size_t prompt = 0;
    ChoiceText text;
    std::string content;
    std::vector<TokenId> ids;
    Json chat_logprobs = Json::array();
    CompletionLogprobs completion_logprobs;
    std::vector<std::optional<engine::TokenLogprob>> prompt_logprobs;
    std::int64_t cached_tokens = 0;
    bool has_begun = false;  // its first chunk is out
    std::optional<std::string> finish;
    Json stop_reason;
  };
  /// What one token adds to a choice.
  struct Delta {
    std::string text;
    std::optional<TokenId> id;
    Json logprobs;
  };

  std::vector<Job> make_jobs();
  void take_token(std::size_t index, const engine::Output& output, std::size_t token);
  void apply(Choice& choice, ChoiceText::Taken taken, Delta& delta);
  void add_logprob(Choice& choice, const engine::TokenLogprob& logprob, Delta& delta);
  void fail(const ApiError& error);
  void complete();
  void cancel_open(engine::FinishReason reason);

  // Writing: session_json.cpp
  bool is_chat() const { return request_.endpoint == Endpoint::kChat; }
  Json envelope(bool is_chunk) const;
  Json usage() const;
  void begin_choice(std::size_t index);
  void write_chunk(std::size_t index, Delta delta);
  void write_event(const Json& event);
  Json chat_choice(std::size_t index);
  Json completion_choice(std::size_t index);
  Json echo_logprobs(Choice& choice);
  Json full_answer();

  GenerationRequest request_;
  const ModelContext& context_;
  EngineLoop& loop_;
  std::shared_ptr<http::Responder> responder_;
  SessionSettings settings_;
  TokenWriter writer_;
  Ticket first_ticket_ = 0;
  std::vector<Choice> choices_;  // index = prompt * n + k
  std::size_t num_finished_ = 0;
  bool is_answered_ = false;
  bool has_stream_ = false;
};

}  // namespace plimsoll::serve
