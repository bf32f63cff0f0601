// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "bench/clock.h"
#include "bench/dataset.h"
#include "bench/load_shape.h"
#include "bench/reply.h"

namespace plimsoll::bench {
namespace {

constexpr std::chrono::milliseconds kModelListTimeout{30'000};
// Prompts are made before the first is sent, so that making them disturbs no clock: some 5 bytes a token, all
// in memory.
constexpr std::int64_t kMaxPromptTokens = 1'000'000'000;

std::string join_url(std::string base, const std::string& endpoint) {
  while (base.ends_with('/')) base.pop_back();
  // "http://host/v1" is what OpenAI's own clients take; the endpoints here start with /v1 themselves.
  if (base.ends_with("/v1") && endpoint.starts_with("/v1/")) base.resize(base.size() - 3);
  return base + endpoint;
}

Status check(const Options& options) {
  const auto refuse = [](std::string why, std::string flag) {
    return fail(ErrorCode::kUsage, std::move(why), std::move(flag));
  };
  if (options.num_prompts < 1) return refuse("there is nothing to send", "--num-prompts");
  if (options.max_concurrency && *options.max_concurrency < 1)
    return refuse("at least one request must be allowed at a time", "--max-concurrency");
  if (options.dataset_output_tokens && *options.dataset_output_tokens < 1)
    return refuse("at least one token must be asked of each reply", "--custom-output-len");
  if (!(options.request_rate > 0)) return refuse("the rate must be above 0 or inf", "--request-rate");
  if (!(options.burstiness > 0)) return refuse("the burstiness must be above 0 or inf", "--burstiness");
  if (options.num_warmups < 0) return refuse("the number of warm-ups is negative", "--num-warmups");
  if (!checked_sum(options.num_prompts, options.num_warmups))
    return refuse("prompts and warm-ups together are more than can be counted", "--num-warmups");
  const auto prompt_tokens = checked_product(options.num_prompts + options.num_warmups, options.input_tokens);
  if (options.dataset == Dataset::kRandom && (!prompt_tokens || *prompt_tokens > kMaxPromptTokens))
    return refuse("all prompts together would be more than 1,000,000,000 tokens, and they are held in memory",
                  "--num-prompts, --random-input-len");
  if (!options.endpoint.empty() && !options.endpoint.starts_with('/'))
    return refuse("the endpoint is a path and starts with /", "--endpoint");
  return {};
}

Result<std::string> first_model(const Options& options) {
  const std::string url = join_url(options.base_url, "/v1/models");
  PLIMSOLL_TRY(
      const http::Response answer,
      http::fetch("GET", url, "", options.headers, std::min(kModelListTimeout, options.request_timeout)));
  if (answer.status != 200)
    return fail(
        ErrorCode::kNetwork,
        "GET " + url + " answered " + std::to_string(answer.status) + ": " + answer.body.substr(0, 200), {},
        "name the model with --model, or give what the server asks for with --header");
  const auto models = parse_json(answer.body, url);
  const std::string* id = models ? models->at_pointer("/data/0/id").as_string() : nullptr;
  if (!id)
    return fail(ErrorCode::kNetwork, "GET " + url + " named no model", {}, "name the model with --model");
  return *id;
}

std::string request_body(const Options& options, const Prompt& prompt) {
  Json body = Json::object({{"model", options.model}});
  if (options.backend == Backend::kOpenaiChat) {
    Json message = Json::object({{"role", "user"}, {"content", prompt.text}});
    body.set("messages", Json(Json::Array{std::move(message)}));
    body.set("max_completion_tokens", prompt.max_output_tokens);
  } else {
    body.set("prompt", prompt.text);
    body.set("max_tokens", prompt.max_output_tokens);
  }
  body.set("stream", true);
  Json stream_options = Json::object({{"include_usage", true}});
  // vLLM can say with each event how many tokens it holds; other servers may refuse the key.
  if (options.backend == Backend::kVllm) stream_options.set("continuous_usage_stats", true);
  body.set("stream_options", std::move(stream_options));
  if (options.ignore_eos) body.set("ignore_eos", true);
  return dump(body);
}

Load make_load(const Options& options, const http::Url& url, const std::vector<Prompt>& prompts,
               const std::vector<double>& times) {
  Load load;
  load.url = url;
  load.headers = {{"Content-Type", "application/json"}, {"Accept", "text/event-stream"}};
  for (const auto& field : options.headers) load.headers.push_back(field);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    load.shots.push_back({request_body(options, prompts[i]), times[i]});
  load.max_concurrency = options.max_concurrency.value_or(0);
  load.timeout = options.request_timeout;
  return load;
}

std::vector<RequestRecord> make_records(const std::vector<Prompt>& prompts) {
  std::vector<RequestRecord> records;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    RequestRecord record;
    record.index = static_cast<std::int64_t>(i);
    record.prompt = prompts[i].text;
    record.prompt_tokens = prompts[i].prompt_tokens;
    record.max_output_tokens = prompts[i].max_output_tokens;
    records.push_back(std::move(record));
  }
  return records;
}

Status warm_up(const Options& options, const http::Url& url, const std::vector<Prompt>& prompts) {
  if (prompts.empty()) return {};
  auto records = make_records(prompts);
  const Load load = make_load(options, url, prompts, std::vector<double>(prompts.size(), 0.0));
  PLIMSOLL_TRY([[maybe_unused]] const auto seen,
               send_all(load, records, [](const RequestRecord&, double) {}));
  return {};
}

std::string local_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

/// Nobody answered at all: that is not a result but an error.
Status check_reached(const std::vector<RequestRecord>& records, const std::string& url) {
  const bool is_unreachable = std::all_of(records.begin(), records.end(), [](const RequestRecord& record) {
    return record.error == ErrorKind::kConnect;
  });
  if (!is_unreachable) return {};
  return fail(ErrorCode::kNetwork, "no request reached " + url + ": " + records.front().error_text,
              "--base-url", "check that the server runs and that the address is right");
}

}  // namespace

Result<RunResult> run(const Options& given, const ProgressSink& progress) {
  PLIMSOLL_TRY_VOID(check(given));
  RunResult result;
  result.options = given;
  Options& options = result.options;
  const bool is_chat = options.backend == Backend::kOpenaiChat;
  if (options.endpoint.empty()) options.endpoint = is_chat ? "/v1/chat/completions" : "/v1/completions";
  const std::string address = join_url(options.base_url, options.endpoint);
  PLIMSOLL_TRY(const http::Url url, http::parse_url(address));
  PLIMSOLL_TRY(std::vector<Prompt> prompts, load_prompts(options, options.num_prompts + options.num_warmups));
  if (options.model.empty()) {
    PLIMSOLL_TRY(options.model, first_model(options));
  }
  // Warm-ups have prompts of their own: a copy of a measured one would find itself in the prefix cache.
  const auto split = prompts.begin() + options.num_prompts;
  PLIMSOLL_TRY_VOID(warm_up(options, url, std::vector<Prompt>(split, prompts.end())));
  prompts.erase(split, prompts.end());

  result.date = local_date();
  result.records = make_records(prompts);
  const std::vector<double> times =
      send_times({options.num_prompts, options.request_rate, options.burstiness, options.seed});
  const Load load = make_load(options, url, prompts, times);
  Progress state;
  state.total = options.num_prompts;
  const auto on_finished = [&](const RequestRecord& record, double elapsed_s) {
    ++(record.is_success() ? state.completed : state.failed);
    state.elapsed_s = elapsed_s;
    if (progress) progress(state);
  };
  PLIMSOLL_TRY(Observed observed, send_all(load, result.records, on_finished));
  PLIMSOLL_TRY_VOID(check_reached(result.records, address));
  for (RequestRecord& record : result.records) {
    count_tokens(record, options.tokenizer.get());
    if (record.usage_prompt_tokens) record.prompt_tokens = *record.usage_prompt_tokens;
  }
  RunFacts facts;
  facts.duration_s = observed.duration_s;
  facts.cpu_s = observed.cpu_s;
  facts.requested_rate = options.request_rate;
  facts.goals = options.goodput;
  facts.stall_threshold_ms = options.stall_threshold_ms;
  facts.loop_lag_ms = std::move(observed.loop_lag_ms);
  result.summary = summarize(result.records, facts);
  return result;
}

}  // namespace plimsoll::bench
