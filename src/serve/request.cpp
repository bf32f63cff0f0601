// SPDX-License-Identifier: Apache-2.0
#include "serve/request.h"

#include <fmt/format.h>

#include <algorithm>

#include "serve/chat.h"
#include "serve/fields.h"
#include "serve/sampling_fields.h"

namespace plimsoll::serve {
namespace {

constexpr int kMaxChoices = 128;

/// Token ids of one prompt. Faults when one is outside the vocabulary.
std::vector<TokenId> read_ids(Fields& fields, std::string_view name, const Json& list, std::int64_t vocab) {
  std::vector<TokenId> ids;
  ids.reserve(list.size());
  for (const Json& item : list.items()) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id >= vocab) {
      fields.fault(name, fmt::format("{}: token ids go from 0 to {}, got {}", name, vocab - 1, dump(item)));
      return ids;
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

Prompt prompt_of_ids(Fields& fields, std::string_view name, const Json& list, const ModelContext& context) {
  Prompt prompt;
  prompt.ids = read_ids(fields, name, list, context.vocab_size);
  if (context.tokenizer && !fields.error()) prompt.text = context.tokenizer->decode(prompt.ids, false);
  return prompt;
}

Prompt prompt_of_text(Fields& fields, std::string_view name, const std::string& text,
                      const ModelContext& context) {
  Prompt prompt;
  prompt.text = text;
  if (!context.tokenizer) {
    fields.fault(name, "this model has no tokenizer: give the prompt as token ids");
    return prompt;
  }
  const bool adds_special = fields.boolean("add_special_tokens").value_or(true);
  prompt.ids = context.tokenizer->encode(
      text,
      {.add_special_tokens = adds_special, .parse_special = fields.boolean("parse_special").value_or(true)});
  return prompt;
}

void read_stream(Fields& fields, Caller caller, AnswerOptions& answer) {
  answer.is_stream = fields.boolean("stream").value_or(false);
  if (answer.is_stream && caller == Caller::kOffline)
    fields.fault("stream", "stream is not for lines of `generate`: each line is answered whole");
  const Json& options = fields.raw("stream_options");
  if (options.is_null()) return;
  if (!options.is_object()) return fields.fault("stream_options", "stream_options must be an object");
  if (!answer.is_stream)
    return fields.fault("stream_options", "stream_options can only be set when stream is true");
  Fields inner(options, "stream_options.");
  answer.include_usage = inner.boolean("include_usage").value_or(false);
  answer.continuous_usage = answer.include_usage && inner.boolean("continuous_usage_stats").value_or(false);
  if (inner.error()) fields.fault(*inner.error());
}

void read_logprobs(Fields& fields, Caller caller, GenerationRequest& request) {
  const bool is_flag = request.endpoint == Endpoint::kChat && fields.raw("logprobs").is_bool();
  std::optional<std::int64_t> top;
  if (request.endpoint == Endpoint::kCompletion || (caller == Caller::kOffline && !is_flag)) {
    top = fields.integer("logprobs", 0, kMaxLogprobs);
  } else {
    const bool wants = fields.boolean("logprobs").value_or(false);
    const auto asked = fields.integer("top_logprobs", 0, kMaxLogprobs);
    if (asked && *asked > 0 && !wants)
      fields.fault("top_logprobs", "when using top_logprobs, logprobs must be set to true");
    if (wants) top = asked.value_or(0);
  }
  request.answer.wants_logprobs = top.has_value();
  if (top) request.sampling.logprobs = static_cast<int>(*top);
}

void read_answer(Fields& fields, const ModelContext& context, Caller caller, GenerationRequest& request) {
  AnswerOptions& answer = request.answer;
  read_stream(fields, caller, answer);
  read_logprobs(fields, caller, request);
  answer.echo = fields.boolean("echo").value_or(false);
  answer.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  answer.return_tokens_as_token_ids = fields.boolean("return_tokens_as_token_ids").value_or(false);
  answer.include_stop_in_output = fields.boolean("include_stop_str_in_output").value_or(false);
  answer.wants_prompt_logprobs = request.sampling.prompt_logprobs.has_value();
  if (answer.is_stream && answer.wants_prompt_logprobs)
    fields.fault("prompt_logprobs", "prompt_logprobs are not available when stream is true");
  if (answer.echo && request.endpoint == Endpoint::kCompletion && answer.wants_logprobs)
    request.sampling.prompt_logprobs =
        std::max(request.sampling.prompt_logprobs.value_or(0), *request.sampling.logprobs);
  request.n = static_cast<int>(fields.integer("n", 1, kMaxChoices).value_or(1));
  if (const auto best_of = fields.integer("best_of", 1); best_of && *best_of != request.n)
    fields.fault("best_of", "best_of other than n is not supported by this server");
  request.turn = read_turn(fields);
  if (request.model.empty() && !context.names.empty()) request.model = context.names.front();
}

void read_return_logits(Fields& fields, engine::SamplingParams& sampling) {
  for (const Json& item : fields.raw("return_logits").items()) {
    const std::string* what = item.as_string();
    if (what && *what == "steps")
      sampling.return_step_logits = true;
    else if (what && *what == "prompt")
      sampling.return_prompt_logits = true;
    else
      fields.fault("return_logits", "return_logits holds \"steps\" and \"prompt\" only");
  }
}

/// How many tokens the request asks for, and the field that says so; nothing when it leaves it open.
std::optional<std::int64_t> read_max_tokens(Fields& fields, const AnswerOptions& answer, Endpoint endpoint,
                                            std::string& param) {
  const bool may_be_zero = endpoint == Endpoint::kCompletion && answer.echo;
  const auto old_name = fields.integer("max_tokens", may_be_zero ? 0 : 1);
  param = "max_tokens";
  if (const auto new_name = fields.integer("max_completion_tokens", 1)) {
    param = "max_completion_tokens";
    return new_name;
  }
  return old_name;
}

/// Sets max_tokens of every prompt, and refuses what goes beyond the context.
void fit_context(Fields& fields, const ModelContext& context, GenerationRequest& request) {
  std::string param;
  auto asked = read_max_tokens(fields, request.answer, request.endpoint, param);
  request.answer.drops_generated = asked == 0;
  if (asked == 0) asked = 1;  // the engine computes the prompt while it chooses one token
  const std::string prompt_param = request.endpoint == Endpoint::kChat ? "messages" : "prompt";
  for (const Prompt& prompt : request.prompts) {
    const auto length = static_cast<std::int64_t>(prompt.ids.size());
    const std::int64_t room = context.max_model_len - length;
    if (length == 0) return fields.fault(prompt_param, "the prompt holds no token");
    if (room < 1)
      return fields.fault(
          prompt_param,
          fmt::format("This model's maximum context length is {} tokens. However, your prompt "
                      "contains {} input tokens. Please reduce its length.",
                      context.max_model_len, length),
          "context_length_exceeded");
    if (asked && *asked > room)
      return fields.fault(
          prompt_param,
          fmt::format("This model's maximum context length is {} tokens. However, you requested {} output "
                      "tokens and your prompt contains {} input tokens. Please reduce one of them.",
                      context.max_model_len, *asked, length),
          "context_length_exceeded");
    const std::int64_t author = context.defaults.max_new_tokens.value_or(room);
    std::int64_t limit = asked.value_or(request.endpoint == Endpoint::kChat ? author : 16);
    if (context.defaults.caps_max_tokens) limit = std::min(limit, author);
    limit = std::min(limit, room);
    if (request.sampling.min_tokens > limit)
      return fields.fault("min_tokens", fmt::format("min_tokens must be at most max_tokens ({}), got {}",
                                                    limit, request.sampling.min_tokens));
    request.max_tokens.push_back(limit);
  }
}

}  // namespace

void Turn::apply(engine::Submission& submission) const {
  submission.priority = priority;
  submission.user = user;
  submission.cache_salt = cache_salt;
}

Turn read_turn(Fields& fields) {
  Turn turn;
  turn.priority = static_cast<int>(fields.integer("priority", INT32_MIN, INT32_MAX).value_or(0));
  if (const auto salt = fields.string("cache_salt")) {
    if (salt->empty()) fields.fault("cache_salt", "cache_salt must not be empty");
    turn.cache_salt = *salt;
  }
  // A user is a label for us: another type than a string is no reason to refuse.
  if (const std::string* user = fields.raw("user").as_string()) turn.user = *user;
  return turn;
}

std::vector<Prompt> read_prompts(Fields& fields, std::string_view name, const ModelContext& context) {
  std::vector<Prompt> prompts;
  const Json& value = fields.raw(name);
  const auto fault = [&](std::string_view message) {
    fields.fault(name, fmt::format("{}{}", name, message));
  };
  if (value.is_null()) fault(": field required");
  if (const std::string* text = value.as_string()) {
    prompts.push_back(prompt_of_text(fields, name, *text, context));
  } else if (value.is_array() && value.size() > 0) {
    const Json& first = value.items().front();
    if (first.is_number()) {
      prompts.push_back(prompt_of_ids(fields, name, value, context));
    } else if (first.is_string() || first.is_array()) {
      if (value.size() > kMaxSequences)
        fault(fmt::format(": at most {} of them, got {}", kMaxSequences, value.size()));
      for (const Json& item : value.items()) {
        if (fields.error()) break;
        if (item.is_string() && first.is_string())
          prompts.push_back(prompt_of_text(fields, name, *item.as_string(), context));
        else if (item.is_array() && first.is_array())
          prompts.push_back(prompt_of_ids(fields, name, item, context));
        else
          fault(": a list holds strings only, or lists of token ids only");
      }
    } else {
      fault(" must be a string, token ids, or a list of these");
    }
  } else {
    fault(" must be a string, token ids, or a list of these, and not empty");
  }
  return prompts;
}

ApiResult<Json> read_body(std::string_view body) {
  auto parsed = parse_json(body, "request body", {.max_depth = 100, .allow_bare_constants = false});
  if (!parsed) return refuse(bad_request(parsed.error().describe(), "", "invalid_json"));
  if (!parsed->is_object()) return refuse(bad_request("the request body must be a JSON object", ""));
  return std::move(*parsed);
}

ApiResult<GenerationRequest> read_request(Endpoint endpoint, const Json& body, const ModelContext& context,
                                          Caller caller) {
  Fields fields(body);
  GenerationRequest request;
  request.endpoint = endpoint;
  request.model = fields.string("model").value_or("");
  if (const auto unknown = check_model_name(context, request.model)) return refuse(*unknown);
  refuse_unsupported(fields);
  read_sampling(fields, context, request);
  read_answer(fields, context, caller, request);
  if (caller == Caller::kOffline) read_return_logits(fields, request.sampling);
  if (fields.error()) return refuse(*fields.error());
  if (endpoint == Endpoint::kChat) {
    request.prompts.push_back(read_chat_prompt(fields, context));
    const Json& messages = fields.raw("messages");
    if (request.answer.echo && messages.size() > 0) request.echo_text = message_text(messages.items().back());
  } else if (caller == Caller::kOffline && fields.raw("prompt_token_ids").is_array()) {
    request.prompts.push_back(
        prompt_of_ids(fields, "prompt_token_ids", fields.raw("prompt_token_ids"), context));
  } else {
    request.prompts = read_prompts(fields, "prompt", context);
  }
  if (fields.error()) return refuse(*fields.error());
  if (request.prompts.size() * static_cast<std::size_t>(request.n) > kMaxSequences)
    fields.fault("n", fmt::format("prompts times n must be at most {}", kMaxSequences));
  fit_context(fields, context, request);
  if (fields.error()) return refuse(*fields.error());
  return request;
}

engine::Submission submission_of(const GenerationRequest& request, std::size_t prompt) {
  engine::Submission submission;
  submission.prompt = request.prompts[prompt].ids;
  submission.choices.assign(static_cast<std::size_t>(request.n), request.sampling);
  for (std::size_t k = 0; k < submission.choices.size(); ++k) {
    submission.choices[k].max_tokens = request.max_tokens[prompt];
    // One seed for all choices would make them equal.
    if (request.sampling.seed) submission.choices[k].seed = *request.sampling.seed + k;
  }
  request.turn.apply(submission);
  return submission;
}

}  // namespace plimsoll::serve
