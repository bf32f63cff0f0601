// SPDX-License-Identifier: Apache-2.0
// What does a client ask for? The body of /v1/chat/completions, /v1/completions or a `generate` line as a
// typed, validated request: every field in its range, prompts as token ids. Pure; any thread.
// Which fields are taken, ignored and refused: docs/formats/openai_http.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "serve/api_error.h"
#include "serve/model_context.h"

namespace plimsoll::serve {

class Fields;

/// Prompts times choices of one request.
inline constexpr std::size_t kMaxSequences = 4096;

enum class Endpoint { kChat, kCompletion };

struct Prompt {
  std::vector<TokenId> ids;
  std::string text;  // as given or rendered; decoded from the ids when only those were given
};

/// Whose turn it is when requests wait, and with whom it shares prefixes.
struct Turn {
  int priority = 0;
  std::string cache_salt;
  std::string user;  // those of equal priority take turns

  void apply(engine::Submission& submission) const;
};
Turn read_turn(Fields& fields);

/// How the answer is to be written.
struct AnswerOptions {
  bool is_stream = false;
  bool include_usage = false;     // one more chunk at the end of a stream
  bool continuous_usage = false;  // usage in every chunk
  bool echo = false;
  bool wants_logprobs = false;
  bool wants_prompt_logprobs = false;  // beside those that echo with logprobs asks for
  bool drops_generated = false;        // max_tokens 0 with echo: only the prompt is answered
  bool return_token_ids = false;
  bool return_tokens_as_token_ids = false;
  bool skip_special_tokens = true;
  bool include_stop_in_output = false;
};

struct GenerationRequest {
  Endpoint endpoint = Endpoint::kCompletion;
  std::string model;  // the served name that was asked for
  std::vector<Prompt> prompts;
  int n = 1;
  engine::SamplingParams sampling;       // max_tokens is per prompt, see max_tokens
  std::vector<std::int64_t> max_tokens;  // of each prompt
  std::vector<std::string> stop;         // stop strings
  std::vector<TokenId> asked_stop_ids;   // of the request alone: they become the stop_reason
  AnswerOptions answer;
  Turn turn;
  std::string echo_text;  // chat with echo: the last message, before the answer
};

enum class Caller { kHttp, kOffline };

/// Parses a request body into an object. Errors: 400 for bad JSON or another type.
ApiResult<Json> read_body(std::string_view body);

/// The field `name`: a string, ids, a list of strings or a list of lists of ids; texts are encoded as
/// add_special_tokens and parse_special say. What is wrong is kept in `fields`.
std::vector<Prompt> read_prompts(Fields& fields, std::string_view name, const ModelContext& context);

/// kOffline differs in four points: `prompt_token_ids` and `return_logits` are taken, `logprobs` is a number
/// in chats too, and `stream` is refused.
/// Errors: 400 naming the field; 404 for another model; 400 context_length_exceeded.
ApiResult<GenerationRequest> read_request(Endpoint endpoint, const Json& body, const ModelContext& context,
                                          Caller caller = Caller::kHttp);

/// What the engine is asked for one of the request's prompts: n choices, whose seeds follow each other.
engine::Submission submission_of(const GenerationRequest& request, std::size_t prompt);

}  // namespace plimsoll::serve
