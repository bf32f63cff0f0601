// SPDX-License-Identifier: Apache-2.0
#include "serve/session.h"

#include "serve/answering.h"

namespace plimsoll::serve {

Session::Session(GenerationRequest request, const ModelContext& context, EngineLoop& loop,
                 std::shared_ptr<http::Responder> responder, SessionSettings settings)
    : request_(std::move(request)),
      context_(context),
      loop_(loop),
      responder_(std::move(responder)),
      settings_(std::move(settings)),
      writer_(context.tokenizer, request_.answer.return_tokens_as_token_ids) {
  const ChoiceTextOptions options{.stop = request_.stop,
                                  .skip_special_tokens = request_.answer.skip_special_tokens,
                                  .include_stop = request_.answer.include_stop_in_output,
                                  .min_tokens = request_.sampling.min_tokens,
                                  .asked_stop_ids = request_.asked_stop_ids};
  for (std::size_t prompt = 0; prompt < request_.prompts.size(); ++prompt)
    for (int k = 0; k < request_.n; ++k)
      choices_.emplace_back(prompt, ChoiceText(context.tokenizer, options));
}

std::vector<Job> Session::make_jobs() {
  std::vector<Job> jobs;
  for (std::size_t prompt = 0; prompt < request_.prompts.size(); ++prompt)
    jobs.push_back({.ticket = first_ticket_ + prompt * static_cast<std::size_t>(request_.n),
                    .submission = submission_of(request_, prompt),
                    .sink = shared_from_this()});
  return jobs;
}

void Session::start() {
  first_ticket_ = loop_.new_tickets(choices_.size());
  if (auto refused = loop_.submit(make_jobs())) return fail(*refused);
  cancel_on_disconnect(*responder_, loop_, first_ticket_, choices_.size());
}

void Session::on_output(Ticket ticket, const engine::Output& output) {
  const std::size_t index = ticket - first_ticket_;
  Choice& choice = choices_.at(index);
  if (is_answered_ || choice.finish) return;
  if (output.cached_prompt_tokens > 0) choice.cached_tokens = output.cached_prompt_tokens;
  if (!output.prompt_logprobs.empty()) choice.prompt_logprobs = output.prompt_logprobs;
  if (output.finish == engine::FinishReason::kError) {
    ApiError error{.status = 500, .message = output.error, .type = "server_error"};
    return fail(error);
  }
  for (std::size_t token = 0; token < output.tokens.size() && !is_answered_ && !choice.finish; ++token)
    take_token(index, output, token);
  if (is_answered_) return;
  if (output.finish && !choice.finish) {
    // An end without a token of its own: cancelled.
    Delta delta;
    apply(choice, choice.text.take_end(output), delta);
    write_chunk(index, std::move(delta));
  }
  if (num_finished_ == choices_.size()) complete();
}

void Session::apply(Choice& choice, ChoiceText::Taken taken, Delta& delta) {
  choice.content += taken.text;
  delta.text = std::move(taken.text);
  if (!taken.finish) return;
  choice.finish = std::move(taken.finish);
  choice.stop_reason = std::move(taken.stop_reason);
  ++num_finished_;
}

void Session::take_token(std::size_t index, const engine::Output& output, std::size_t token) {
  Choice& choice = choices_[index];
  Delta delta;
  if (request_.answer.drops_generated) {
    apply(choice, {.text = {}, .finish = "length", .stop_reason = {}}, delta);
  } else {
    const TokenId id = output.tokens[token];
    choice.ids.push_back(id);
    delta.id = id;
    apply(choice, choice.text.take(output, token), delta);
    if (request_.answer.wants_logprobs && token < output.logprobs.size())
      add_logprob(choice, output.logprobs[token], delta);
  }
  if (choice.finish && !output.finish) loop_.cancel(first_ticket_ + index, engine::FinishReason::kStop);
  write_chunk(index, std::move(delta));
  const auto num_tokens = static_cast<std::int64_t>(choice.ids.size());
  if (settings_.fail_after_tokens && num_tokens >= *settings_.fail_after_tokens)
    fail({.status = 500, .message = "fault injected for a test", .type = "server_error"});
}

void Session::add_logprob(Choice& choice, const engine::TokenLogprob& logprob, Delta& delta) {
  const bool is_stream = request_.answer.is_stream;
  if (is_chat()) {
    Json entry = chat_logprob_json(logprob, writer_);
    if (is_stream)
      delta.logprobs = Json::object({{"content", Json(Json::Array{std::move(entry)})}});
    else
      choice.chat_logprobs.push_back(std::move(entry));
    return;
  }
  if (choice.ids.size() == 1 && request_.answer.echo) echo_logprobs(choice);
  choice.completion_logprobs.add(logprob, writer_);
  if (is_stream) delta.logprobs = choice.completion_logprobs.take();
}

void Session::cancel_open(engine::FinishReason reason) {
  for (std::size_t index = 0; index < choices_.size(); ++index)
    if (!choices_[index].finish) loop_.cancel(first_ticket_ + index, reason);
}

void Session::on_refused(Ticket, const ApiError& error) {
  if (!is_answered_) fail(error);
}

void Session::fail(const ApiError& error) {
  is_answered_ = true;
  cancel_open(engine::FinishReason::kError);
  if (has_stream_) {
    write_event(to_json(error));
    responder_->write("data: [DONE]\n\n");
    responder_->finish();
    return;
  }
  send_error(*responder_, settings_.headers, error);
}

void Session::complete() {
  is_answered_ = true;
  if (!request_.answer.is_stream) return send_json(*responder_, settings_.headers, full_answer());
  if (request_.answer.include_usage) {
    Json event = envelope(true);
    event.set("choices", Json::array());
    event.set("usage", usage());
    write_event(event);
  }
  responder_->write("data: [DONE]\n\n");
  responder_->finish();
}

}  // namespace plimsoll::serve
