// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <thread>

#include "bench/backend.h"
#include "bench/clock.h"
#include "bench/dataset.h"
#include "bench/reply.h"
#include "bench/secrets.h"
#include "workload/workload.h"

namespace plimsoll::bench {
namespace {

constexpr std::chrono::milliseconds kModelListTimeout{30'000};
constexpr std::int64_t kMostRequests = 10'000'000;
// Shapes of a gamma distribution whose gaps a double can tell from 0 and from each other.
constexpr double kLeastBurstiness = 1e-3;
constexpr double kMostBurstiness = 1e6;
constexpr double kLongestSchedule_s = 366.0 * 86'400;
constexpr std::chrono::milliseconds kReadyProbe{5'000};
constexpr std::chrono::milliseconds kReadyPause{250};

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
  if (options.base_urls.empty()) return refuse("there is no server to ask", "--base-url");
  if (options.num_prompts < 1) return refuse("there is nothing to send", "--num-prompts");
  if (options.max_concurrency && *options.max_concurrency < 1)
    return refuse("at least one request must be allowed at a time", "--max-concurrency");
  if (options.dataset_output_tokens && *options.dataset_output_tokens < 1)
    return refuse("at least one token must be asked of each reply", "--custom-output-len");
  if (!(options.request_rate > 0)) return refuse("the rate must be above 0 or inf", "--request-rate");
  const bool is_drawable = options.burstiness >= kLeastBurstiness && options.burstiness <= kMostBurstiness;
  if (!is_drawable && !(std::isinf(options.burstiness) && options.burstiness > 0))
    return refuse("the burstiness must lie between 0.001 and 1,000,000, or be inf", "--burstiness");
  if (options.num_warmups < 0) return refuse("the number of warm-ups is negative", "--num-warmups");
  const auto requests = checked_sum(options.num_prompts, options.num_warmups);
  if (!requests || *requests > kMostRequests)
    return refuse("more than 10,000,000 requests, and what happens to each is held in memory",
                  "--num-prompts, --num-warmups");
  if (!options.endpoint.empty() && !options.endpoint.starts_with('/'))
    return refuse("the endpoint is a path and starts with /", "--endpoint");
  return check_backend(options);
}

/// Waits until every endpoint answers anything but a failure of its own.
Status wait_until_ready(const Options& options) {
  using Clock = std::chrono::steady_clock;
  if (options.ready_timeout_s <= 0) return {};
  const auto end = Clock::now() + std::chrono::duration<double>(options.ready_timeout_s);
  for (const std::string& base : options.base_urls) {
    const std::string url = join_url(base, "/v1/models");
    for (;;) {
      const auto answer = http::fetch("GET", url, "", options.headers, kReadyProbe, options.verify_tls);
      if (answer && answer->status < 500) break;
      if (Clock::now() >= end)
        return fail(
            ErrorCode::kNetwork,
            "the server was not ready in time: GET " + url + " " +
                (answer ? "answered " + std::to_string(answer->status) : "failed: " + answer.error().message),
            "--ready-check-timeout-sec");
      std::this_thread::sleep_for(kReadyPause);
    }
  }
  return {};
}

Result<std::string> first_model(const Options& options) {
  const std::string url = join_url(options.base_urls.front(), "/v1/models");
  PLIMSOLL_TRY(const http::Response answer,
               http::fetch("GET", url, "", options.headers,
                           std::min(kModelListTimeout, options.request_timeout), options.verify_tls));
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

/// One shot for each prompt. Sessions go round the endpoints; the turns of one stay where it began.
Load make_load(const Options& options, const std::vector<http::Url>& targets,
               const std::vector<Prompt>& prompts, const std::vector<double>& times) {
  Load load;
  load.targets = targets;
  load.format = reply_format(options.backend);
  load.headers = options.headers;
  const auto add = [&load](const char* name, std::string_view value) {
    if (http::header(load.headers, name).empty()) load.headers.emplace_back(name, value);
  };
  add("Content-Type", "application/json");
  add("Accept", accepted_type(options.backend));
  std::size_t sessions = 0;
  for (const Prompt& prompt : prompts) {
    Shot shot;
    shot.follows = prompt.follows;
    shot.delay_s = prompt.delay_s;
    if (prompt.follows >= 0) {
      shot.target = load.shots[static_cast<std::size_t>(prompt.follows)].target;
    } else {
      shot.at_s = prompt.at_s.value_or(times[sessions]);
      shot.target = sessions++ % targets.size();
    }
    load.shots.push_back(shot);
  }
  load.max_concurrency = options.max_concurrency.value_or(0);
  load.timeout = options.request_timeout;
  load.keep_alive = options.keep_alive;
  load.is_interrupted = options.is_interrupted;
  load.verify_tls = options.verify_tls;
  load.request_id_prefix = options.request_id_prefix;
  return load;
}

/// The turns before `shot` of its session with their answers, and its own. A turn that failed is left out
/// with its answer: nobody would quote it.
std::vector<Message> conversation_of(const std::vector<RequestRecord>& records, std::size_t shot) {
  std::vector<Message> messages = {{true, records[shot].prompt}};
  for (std::int64_t at = records[shot].follows; at >= 0;) {
    const RequestRecord& before = records[static_cast<std::size_t>(at)];
    if (before.is_success()) {
      messages.push_back({false, before.text});
      messages.push_back({true, before.prompt});
    }
    at = before.follows;
  }
  std::reverse(messages.begin(), messages.end());
  return messages;
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

/// Sends and waits. The bodies are made from `records`, which grow while the load runs: a follow-up quotes
/// the answer before it.
Result<Observed> send(const Options& options, Load load, std::vector<RequestRecord>& records,
                      const std::function<void(std::chrono::steady_clock::time_point)>& on_start,
                      const StandingSink& on_standing) {
  load.body_of = [&options, &records](std::size_t shot) {
    return request_body(options, conversation_of(records, shot), records[shot].max_output_tokens);
  };
  return send_all(load, records, on_start, on_standing);
}

Status warm_up(const Options& options, const std::vector<http::Url>& targets,
               const std::vector<Prompt>& prompts) {
  if (prompts.empty()) return {};
  auto records = make_records(prompts);
  const Load load = make_load(options, targets, prompts, std::vector<double>(prompts.size(), 0.0));
  PLIMSOLL_TRY(
      [[maybe_unused]] const auto seen,
      send(options, load, records, [](std::chrono::steady_clock::time_point) {}, [](const Standing&) {}));
  return {};
}

/// Cuts the warm-ups off the end of `prompts`.
std::vector<Prompt> split_warm_ups(std::vector<Prompt>& prompts, std::int64_t count) {
  const auto split = prompts.end() - count;
  std::vector<Prompt> warm_ups(split, prompts.end());
  prompts.erase(split, prompts.end());
  return warm_ups;
}

Result<std::vector<http::Url>> targets_of(const Options& options) {
  std::vector<http::Url> targets;
  for (const std::string& base : options.base_urls) {
    PLIMSOLL_TRY(targets.emplace_back(), http::parse_url(join_url(base, options.endpoint)));
  }
  return targets;
}

std::string local_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

/// What was to be watched and gave nothing, in words.
std::vector<std::string> unwatched(const Options& options, const MonitorSeries& seen) {
  std::vector<std::string> all;
  const auto has = [&seen](std::string_view name) {
    return std::any_of(seen.series.begin(), seen.series.end(),
                       [name](const ServerSeries& series) { return series.name == name; });
  };
  if (options.server_pid && !has("resident_memory"))
    all.push_back("The memory of process " + std::to_string(*options.server_pid) + " could not be read.");
  if (options.gpu_monitor && !has("gpu_memory_used")) all.push_back("nvidia-smi told of no GPU's memory.");
  const bool is_named = options.server_metrics != "auto" && options.server_metrics != "off";
  if (is_named && std::none_of(seen.series.begin(), seen.series.end(),
                               [](const ServerSeries& series) { return !series.endpoint.empty(); }))
    all.push_back("The page of --server-metrics gave no figures that are known.");
  return all;
}

/// Nobody answered at all: that is not a result but an error.
Status check_reached(const std::vector<RequestRecord>& records, const std::string& url) {
  const bool is_unreachable =
      !records.empty() && std::all_of(records.begin(), records.end(), [](const RequestRecord& record) {
        return record.error == ErrorKind::kConnect;
      });
  if (!is_unreachable) return {};
  return fail(ErrorCode::kNetwork, "no request reached " + url + ": " + records.front().error_text,
              "--base-url", "check that the server runs and that the address is right");
}

MonitorOptions monitor_options(const Options& options) {
  MonitorOptions watched;
  watched.endpoints = options.base_urls;
  watched.headers = options.headers;
  watched.verify_tls = options.verify_tls;
  watched.metrics = options.server_metrics;
  watched.server_pid = options.server_pid;
  watched.watches_gpu = options.gpu_monitor;
  return watched;
}

Progress progress_of(const Standing& standing, std::int64_t total) {
  return {standing.finished - standing.failed,
          standing.failed,
          standing.running,
          total,
          standing.chunks,
          standing.elapsed_s};
}

/// A request that leaves in a year was not meant; and times beyond are none that a clock knows.
Status check_schedule(const Load& load) {
  for (std::size_t i = 0; i < load.shots.size(); ++i) {
    const double at_s = load.shots[i].follows < 0 ? load.shots[i].at_s : load.shots[i].delay_s;
    if (at_s >= 0 && at_s <= kLongestSchedule_s) continue;
    return fail(ErrorCode::kUsage,
                "request " + std::to_string(i + 1) + " would leave after more than a year, or never",
                "--request-rate, --ramp-up-start-rps, --trace-speed, --turn-delay", "ask for a higher rate");
  }
  return {};
}

/// Without the server's count a turn's prompt is its own text, and what the session held before it.
void count_prompt(std::vector<RequestRecord>& records, RequestRecord& record) {
  if (record.usage_prompt_tokens) {
    record.prompt_tokens = *record.usage_prompt_tokens;
  } else if (record.follows >= 0) {
    const RequestRecord& before = records[static_cast<std::size_t>(record.follows)];
    record.prompt_tokens += before.prompt_tokens + before.output_tokens;
  }
}

Summary summary_of(const Options& options, std::vector<RequestRecord>& records, Observed observed) {
  for (RequestRecord& record : records) {
    count_tokens(record, options.tokenizer.get());
    count_prompt(records, record);
  }
  // Only now: a turn's count looks back at the turns before it.
  RunFacts facts;
  facts.unfinished = static_cast<std::int64_t>(
      std::erase_if(records, [](const RequestRecord& record) { return record.is_unfinished; }));
  facts.duration_s = observed.duration_s;
  facts.cpu_s = observed.cpu_s;
  facts.requested_rate = options.request_rate;
  facts.goals = options.goodput;
  facts.max_concurrency = options.max_concurrency.value_or(0);
  facts.stall_threshold_ms = options.stall_threshold_ms;
  facts.loop_lag_ms = std::move(observed.loop_lag_ms);
  facts.client_lag_ms = std::move(observed.client_lag_ms);
  facts.late_chunks = observed.late_chunks;
  facts.has_tokenizer = options.tokenizer != nullptr;
  return summarize(records, facts);
}

}  // namespace

Result<RunResult> run(const Options& given, const ProgressSink& progress) {
  PLIMSOLL_TRY_VOID(check(given));
  RunResult result;
  result.options = given;
  Options& options = result.options;
  if (options.endpoint.empty()) options.endpoint = default_endpoint(options.backend);
  PLIMSOLL_TRY(const auto targets, targets_of(options));
  PLIMSOLL_TRY(std::vector<Prompt> prompts, load_prompts(options, options.num_prompts + options.num_warmups));
  PLIMSOLL_TRY_VOID(wait_until_ready(options));
  if (options.model.empty()) {
    PLIMSOLL_TRY(options.model, first_model(options));
  }
  const std::vector<Prompt> warm_ups = split_warm_ups(prompts, options.num_warmups);
  options.num_prompts = std::ssize(prompts);  // a trace was perhaps asked for whole
  PLIMSOLL_TRY_VOID(warm_up(options, targets, warm_ups));

  result.date = local_date();
  result.records = make_records(prompts);
  const auto num_sessions =
      std::count_if(prompts.begin(), prompts.end(), [](const Prompt& p) { return p.follows < 0; });
  const std::vector<double> times = workload::arrival_times(
      {num_sessions, options.request_rate, options.burstiness, options.seed, options.ramp});
  const Load load = make_load(options, targets, prompts, times);
  PLIMSOLL_TRY_VOID(check_schedule(load));
  const auto on_standing = [&](const Standing& standing) {
    if (progress) progress(progress_of(standing, std::ssize(result.records)));
  };
  std::unique_ptr<Monitor> monitor;
  const auto on_start = [&](std::chrono::steady_clock::time_point origin) {
    monitor = Monitor::start(monitor_options(options), origin);
  };
  PLIMSOLL_TRY(Observed observed, send(options, load, result.records, on_start, on_standing));
  if (monitor) result.server = monitor->stop();
  PLIMSOLL_TRY_VOID(check_reached(result.records, join_url(options.base_urls.front(), options.endpoint)));
  result.was_interrupted = observed.was_interrupted;
  result.unwatched = unwatched(options, result.server);
  hide_secrets(options.headers, result.records);
  result.summary = summary_of(options, result.records, std::move(observed));
  return result;
}

}  // namespace plimsoll::bench
