// SPDX-License-Identifier: Apache-2.0
#include "serve/offline.h"

#include <deque>
#include <istream>
#include <ostream>
#include <unordered_map>

#include "serve/answer_json.h"
#include "serve/choice_text.h"
#include "serve/line_reader.h"
#include "serve/request.h"

namespace plimsoll::serve {
namespace {

Json pairs_json(const std::vector<std::pair<TokenId, double>>& top) {
  Json result = Json::array();
  for (const auto& [id, logprob] : top)
    result.push_back(Json(Json::Array{Json(id), Json(finite_logprob(logprob))}));
  return result;
}

Json logprob_json(const engine::TokenLogprob& logprob) {
  return Json::object({{"token_id", logprob.token},
                       {"logprob", finite_logprob(logprob.logprob)},
                       {"top", pairs_json(logprob.top)}});
}

Json rows_json(const std::vector<std::vector<float>>& rows) {
  Json result = Json::array();
  for (const auto& row : rows) result.push_back(Json(Json::Array(row.begin(), row.end())));
  return result;
}

/// One request from its body to its answer.
class Line {
 public:
  using OnText = std::function<void(std::string_view)>;
  using Requests = std::unordered_map<engine::RequestId, std::pair<Line*, std::size_t>>;

  Line(LoadedModel& model, OnText on_text) : model_(model), on_text_(std::move(on_text)) {}

  /// Reads the body and queues its choices with the engine; a refusal is kept as the answer.
  void start(const Json& body, Requests& requests);
  void take(std::size_t index, const engine::Output& output);
  void fail(ApiError error) { error_ = std::move(error); }

  bool is_done() const { return error_ || num_finished_ == choices_.size(); }
  const std::optional<ApiError>& error() const { return error_; }
  Json answer() const;

 private:
  struct Choice {
    explicit Choice(ChoiceText choice_text) : text(std::move(choice_text)) {}
    ChoiceText text;
    engine::RequestId request = 0;
    std::string content;
    std::vector<TokenId> ids;
    Json logprobs = Json::array();
    std::optional<std::string> finish;
  };

  void apply(std::size_t index, ChoiceText::Taken taken);

  LoadedModel& model_;
  OnText on_text_;
  GenerationRequest request_;
  std::vector<Choice> choices_;
  std::size_t num_finished_ = 0;
  std::optional<ApiError> error_;
  // Of the first choice.
  std::vector<std::vector<float>> step_logits_, prompt_logits_;
  std::vector<std::optional<engine::TokenLogprob>> prompt_logprobs_;
};

void Line::start(const Json& body, Requests& requests) {
  const Endpoint endpoint = body.contains("messages") ? Endpoint::kChat : Endpoint::kCompletion;
  auto read = read_request(endpoint, body, model_.context, Caller::kOffline);
  if (!read) return fail(std::move(read).error());
  request_ = std::move(*read);
  if (request_.prompts.size() != 1) return fail(bad_request("a line holds one prompt", "prompt"));
  const ChoiceTextOptions options{.stop = request_.stop,
                                  .skip_special_tokens = request_.answer.skip_special_tokens,
                                  .include_stop = request_.answer.include_stop_in_output,
                                  .min_tokens = request_.sampling.min_tokens,
                                  .asked_stop_ids = request_.asked_stop_ids};
  for (int k = 0; k < request_.n; ++k) choices_.emplace_back(ChoiceText(model_.context.tokenizer, options));
  engine::Submission submission = submission_of(request_, 0);
  for (std::size_t k = 1; k < choices_.size(); ++k)
    submission.choices[k].return_prompt_logits = submission.choices[k].return_step_logits = false;
  const auto first = model_.engine->add(std::move(submission));
  if (!first) return fail(from_error(first.error()));
  for (std::size_t k = 0; k < choices_.size(); ++k) {
    choices_[k].request = *first + k;
    requests[*first + k] = {this, k};
  }
}

void Line::apply(std::size_t index, ChoiceText::Taken taken) {
  Choice& choice = choices_[index];
  choice.content += taken.text;
  if (index == 0 && on_text_ && !taken.text.empty()) on_text_(taken.text);
  if (!taken.finish) return;
  choice.finish = std::move(taken.finish);
  ++num_finished_;
}

void Line::take(std::size_t index, const engine::Output& output) {
  Choice& choice = choices_[index];
  if (is_done() || choice.finish) return;
  if (output.finish == engine::FinishReason::kError)
    return fail({.status = 500, .message = output.error, .type = "server_error"});
  if (index == 0) {
    if (!output.prompt_logits.empty()) prompt_logits_ = output.prompt_logits;
    if (!output.prompt_logprobs.empty()) prompt_logprobs_ = output.prompt_logprobs;
    step_logits_.insert(step_logits_.end(), output.logits.begin(), output.logits.end());
  }
  for (std::size_t token = 0; token < output.tokens.size() && !choice.finish; ++token) {
    if (request_.answer.drops_generated) {
      apply(index, {.text = {}, .finish = "length", .stop_reason = {}});
      break;
    }
    choice.ids.push_back(output.tokens[token]);
    if (token < output.logprobs.size()) choice.logprobs.push_back(logprob_json(output.logprobs[token]));
    apply(index, choice.text.take(output, token));
  }
  if (output.finish && !choice.finish) apply(index, choice.text.take_end(output));
  if (choice.finish && !output.finish) model_.engine->cancel(choice.request);
}

Json Line::answer() const {
  if (error_) return to_json(*error_);
  const bool has_text = model_.context.tokenizer != nullptr;
  Json choices = Json::array();
  for (std::size_t k = 0; k < choices_.size(); ++k) {
    Json choice = Json::object({{"index", k},
                                {"token_ids", ids_json(choices_[k].ids)},
                                {"text", has_text ? Json(choices_[k].content) : Json()},
                                {"finish_reason", choices_[k].finish}});
    if (request_.answer.wants_logprobs) choice.set("logprobs", choices_[k].logprobs);
    choices.push_back(std::move(choice));
  }
  Json answer = Json::object(
      {{"prompt_token_ids", ids_json(request_.prompts.front().ids)}, {"choices", std::move(choices)}});
  if (request_.answer.wants_prompt_logprobs) {
    Json list = Json::array();
    for (const auto& logprob : prompt_logprobs_) list.push_back(logprob ? logprob_json(*logprob) : Json());
    answer.set("prompt_logprobs", std::move(list));
  }
  if (request_.sampling.return_step_logits || request_.sampling.return_prompt_logits) {
    Json logits = Json::object();
    if (request_.sampling.return_step_logits) logits.set("steps", rows_json(step_logits_));
    if (request_.sampling.return_prompt_logits) logits.set("prompt", rows_json(prompt_logits_));
    answer.set("logits", std::move(logits));
  }
  return answer;
}

void step(LoadedModel& model, Line::Requests& requests) {
  const auto outputs = model.engine->step();
  if (const auto cut = model.engine->cut_error()) {
    for (auto& [id, line] : requests)  // what came out is of no model
      line.first->fail(
          {.status = 500, .message = cut->message + " (" + cut->where + ")", .type = "server_error"});
    return;
  }
  for (const engine::Output& output : outputs) {
    const auto found = requests.find(output.request);
    if (found == requests.end()) continue;
    const auto [line, index] = found->second;
    if (output.finish) requests.erase(found);
    line->take(index, output);
  }
}

/// Frees what a line that is done left with the engine (a choice that failed ends the others).
void forget(engine::Engine& engine, const Line& line, Line::Requests& requests) {
  for (auto it = requests.begin(); it != requests.end();) {
    if (it->second.first != &line) {
      ++it;
      continue;
    }
    engine.cancel(it->first);
    it = requests.erase(it);
  }
}

}  // namespace

Result<std::unique_ptr<Offline>> Offline::load(const LoadOptions& options) {
  PLIMSOLL_TRY(auto model, load_model(options));
  PLIMSOLL_TRY_VOID(check_generates(model.spec));
  return std::make_unique<Offline>(std::move(model));
}

Result<std::int64_t> Offline::run_lines(std::istream& in, std::ostream& out, int batch) {
  LineReader reader(in, static_cast<std::size_t>(batch));
  std::deque<std::unique_ptr<Line>> lines;
  Line::Requests requests;
  std::int64_t num_failed = 0;
  bool is_at_end = false;
  while (!is_at_end || !lines.empty()) {
    while (!is_at_end && lines.size() < static_cast<std::size_t>(batch)) {
      // Waits for input only when there is nothing else to do.
      const auto next = reader.next(lines.empty());
      if (next.kind == LineReader::Kind::kEnd) is_at_end = true;
      if (next.kind != LineReader::Kind::kLine) break;
      if (next.text.find_first_not_of(" \t\r") == std::string::npos) continue;
      lines.push_back(std::make_unique<Line>(model_, nullptr));
      auto body = read_body(next.text);
      if (body)
        lines.back()->start(*body, requests);
      else
        lines.back()->fail(std::move(body).error());
    }
    if (model_.engine->has_work()) step(model_, requests);
    for (; !lines.empty() && lines.front()->is_done(); lines.pop_front()) {
      forget(*model_.engine, *lines.front(), requests);
      num_failed += lines.front()->error() ? 1 : 0;
      out << dump(lines.front()->answer()) << '\n' << std::flush;
      if (!out)
        return plimsoll::fail(ErrorCode::kUsage, "the answers cannot be written", "stdout",
                              "check where the output goes");
    }
  }
  return num_failed;
}

ApiResult<Json> Offline::run_one(const Json& body, const std::function<void(std::string_view)>& on_text) {
  Line line(model_, on_text);
  Line::Requests requests;
  line.start(body, requests);
  while (!line.is_done()) step(model_, requests);
  forget(*model_.engine, line, requests);
  if (line.error()) return refuse(*line.error());
  return line.answer();
}

}  // namespace plimsoll::serve
