// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "bench/backend.h"
#include "bench/bench.h"

namespace plimsoll::bench {
namespace {

Json rate_or_inf(double rate) {
  return std::isinf(rate) ? Json("inf") : Json(rate);
}

/// {"mean","p50","p90","p99","max","count"} in milliseconds.
Json spread(const Samples& samples) {
  return Json::object({{"mean", samples.mean()},
                       {"p50", samples.at(50)},
                       {"p90", samples.at(90)},
                       {"p99", samples.at(99)},
                       {"max", samples.max()},
                       {"count", samples.count()}});
}

Json errors_json(const Summary& summary) {
  Json errors = Json::array();
  for (const ErrorCount& error : summary.errors) {
    errors.push_back(Json::object({{"kind", to_string(error.kind)},
                                   {"status", error.status == 0 ? Json() : Json(error.status)},
                                   {"count", error.count},
                                   {"first_body", error.first_body}}));
  }
  return errors;
}

Json endpoints_json(const RunResult& result) {
  Json endpoints = Json::array();
  for (std::size_t i = 0; i < result.summary.endpoints.size(); ++i) {
    const EndpointSummary& endpoint = result.summary.endpoints[i];
    endpoints.push_back(Json::object({{"url", result.options.base_urls[i]},
                                      {"completed", endpoint.completed},
                                      {"failed", endpoint.failed},
                                      {"output_tokens", endpoint.output_tokens},
                                      {"ttft_ms", spread(endpoint.ttft_ms)},
                                      {"e2el_ms", spread(endpoint.e2el_ms)}}));
  }
  return endpoints;
}

Json steady_json(const Summary& s) {
  if (!s.steady) return {};
  return Json::object({{"from_s", s.steady->from_s},
                       {"to_s", s.steady->to_s},
                       {"request_throughput", s.steady->request_rate},
                       {"output_throughput", s.steady->output_rate}});
}

Json own_figures(const RunResult& result) {
  const Summary& s = result.summary;
  Json own = Json::object();
  own.set("errors", errors_json(s));
  own.set("max_concurrent_requests_exact", s.peak_concurrency);
  own.set("peak_output_tokens_per_s_any_window", s.peak_output_tokens_per_window);
  own.set("token_count_source", to_string(s.count_source));
  own.set("input_token_count_source",
          s.input_count_source == CountSource::kChunks ? "estimate" : to_string(s.input_count_source));
  own.set("output_tokens_exact", s.output_tokens);
  own.set("ttft_ms", spread(s.of(Metric::kTtft)));
  own.set("ttft_answer_ms", spread(s.ttft_answer_ms));
  own.set("ttft_from_schedule_ms", spread(s.ttft_from_schedule_ms));
  own.set("itl_ms", spread(s.token_gap_ms));
  own.set("chunk_gap_ms", spread(s.of(Metric::kItl)));
  own.set("tpot_ms", spread(s.of(Metric::kTpot)));
  own.set("e2el_ms", spread(s.of(Metric::kE2el)));
  own.set("e2el_from_schedule_ms", spread(s.of(Metric::kE2elIncludingClientQueue)));
  own.set("headers_ms", spread(s.headers_ms));
  own.set("stalls",
          Json::object(
              {{"threshold_ms", s.stall_threshold_ms}, {"count", s.stalls}, {"max_ms", s.longest_gap_ms}}));
  own.set("requested_rate", rate_or_inf(s.requested_rate));
  own.set("achieved_rate", s.achieved_rate);
  own.set("interarrival_cv2", s.interarrival_cv2);
  own.set("send_lag_ms", spread(s.send_lag_ms));
  own.set("loop_lag_ms", spread(s.loop_lag_ms));
  own.set("client_lag_ms", spread(s.client_lag_ms));
  own.set("late_chunks", s.late_chunks);
  own.set("connect_ms", spread(s.connect_ms));
  own.set("client_cpu_share", s.client_cpu_share);
  own.set("sent_again", s.sent_again);
  own.set("interrupted", result.was_interrupted);
  own.set("client_limited", s.client_limited);
  own.set("client_starved", s.client_starved);
  own.set("good_requests", result.options.goodput.empty() ? Json() : Json(s.good));
  own.set(
      "live_tokens",
      Json::object({{"mean", s.live_tokens_mean}, {"p99", s.live_tokens_p99}, {"peak", s.live_tokens_peak}}));
  own.set("steady_window", steady_json(s));
  own.set("cached_prompt_tokens", s.cached_prompt_tokens);
  own.set("memory_used_bytes", memory_used_json(result.server));
  own.set("endpoints", endpoints_json(result));
  own.set("server_metrics", server_metrics_json(result.server));
  return own;
}

void add_arrays(Json& out, const std::vector<RequestRecord>& records) {
  Json input_lens = Json::array(), output_lens = Json::array(), ttfts = Json::array(), itls = Json::array();
  Json starts = Json::array(), texts = Json::array(), errors = Json::array();
  for (const RequestRecord& record : records) {
    const bool is_success = record.is_success();
    input_lens.push_back(record.prompt_tokens);
    output_lens.push_back(is_success ? record.output_tokens : 0);
    const auto first = ttft_ms(record);
    ttfts.push_back(is_success && first ? Json(*first / 1e3) : Json());
    Json gaps = Json::array();
    if (is_success)
      for (double gap : chunk_gaps_ms(record)) gaps.push_back(gap / 1e3);
    itls.push_back(std::move(gaps));
    starts.push_back(record.sent_s);
    texts.push_back(record.text);
    std::string error;
    if (!is_success) error = std::string(to_string(record.error)) + ": " + record.error_text;
    errors.push_back(std::move(error));
  }
  out.set("input_lens", std::move(input_lens));
  out.set("output_lens", std::move(output_lens));
  out.set("ttfts", std::move(ttfts));
  out.set("itls", std::move(itls));
  out.set("start_times", std::move(starts));
  out.set("generated_texts", std::move(texts));
  out.set("errors", std::move(errors));
}

void add_latencies(Json& out, const RunResult& result) {
  Json latencies = Json::array();
  Json queued = Json::array();
  for (const RequestRecord& record : result.records) {
    latencies.push_back(record.is_success() ? Json(e2el_ms(record) / 1e3) : Json());
    queued.push_back(record.sent_s - record.scheduled_s);
  }
  out.set("latencies", std::move(latencies));
  out.set("queue_times", std::move(queued));
}

void add_statistics(Json& out, const RunResult& result) {
  for (const Metric metric : shown_metrics(result.options)) {
    const Samples& samples = result.summary.of(metric);
    const std::string suffix = "_" + std::string(row_of(metric).key) + "_ms";
    out.set("mean" + suffix, samples.mean());
    out.set("median" + suffix, samples.at(50));
    out.set("std" + suffix, samples.deviation());
    for (double p : result.options.metrics.percentiles)
      out.set("p" + percentile_name(p) + suffix, samples.at(p));
  }
}

void add_totals(Json& out, const Summary& s) {
  out.set("duration", s.duration_s);
  out.set("completed", s.completed);
  out.set("failed", s.failed);
  out.set("total_input_tokens", s.input_tokens);
  out.set("total_output_tokens", s.output_tokens);
  out.set("request_throughput", s.request_rate_done);
  out.set("request_goodput", s.goodput);
  out.set("output_throughput", s.output_rate);
  out.set("total_token_throughput", s.total_rate);
}

}  // namespace

Json to_json(const RunResult& result, bool detailed) {
  const Options& o = result.options;
  const Summary& s = result.summary;
  Json out = Json::object({{"schema", "plimsoll.bench/1"},
                           {"date", result.date},
                           {"endpoint_type", to_string(o.backend)},
                           {"backend", to_string(o.backend)},
                           {"label", o.label.empty() ? Json() : Json(o.label)},
                           {"model_id", o.model},
                           {"tokenizer_id", o.tokenizer_name.empty() ? Json() : Json(o.tokenizer_name)},
                           {"num_prompts", o.num_prompts},
                           {"request_rate", rate_or_inf(o.request_rate)},
                           {"burstiness", rate_or_inf(o.burstiness)},
                           {"max_concurrency", o.max_concurrency}});
  if (o.ramp) {
    out.set("ramp_up_strategy", to_string(o.ramp->shape));
    out.set("ramp_up_start_rps", o.ramp->start_rate);
    out.set("ramp_up_end_rps", o.ramp->end_rate);
  }
  add_totals(out, s);
  if (detailed) add_arrays(out, result.records);
  add_latencies(out, result);
  out.set("max_output_tokens_per_s", static_cast<double>(s.peak_output_tokens_per_bucket));
  out.set("max_concurrent_requests", s.peak_concurrency);
  out.set("rtfx", 0.0);  // of audio only
  add_statistics(out, result);
  if (is_pooling(o.backend)) to_pooling_keys(out, s);
  out.set("plimsoll", own_figures(result));
  // What the run itself says wins.
  for (const auto& [key, value] : o.metadata)
    if (!out.contains(key)) out.set(key, value);
  return out;
}

std::string default_file_name(const RunResult& result) {
  const Options& o = result.options;
  std::string name = o.label.empty() ? std::string(to_string(o.backend)) : o.label;
  if (o.ramp)
    name += fmt::format("-ramp-up-{}-{}qps-{}qps", to_string(o.ramp->shape), o.ramp->start_rate,
                        o.ramp->end_rate);
  else
    name += "-" + (std::isinf(o.request_rate) ? "inf" : format_double(o.request_rate)) + "qps";
  if (o.max_concurrency) name += "-concurrency" + std::to_string(*o.max_concurrency);
  std::string model = o.model.substr(o.model.find_last_of('/') + 1);
  for (char& c : model)
    if (static_cast<unsigned char>(c) < ' ') c = '_';
  return name + "-" + model + "-" + result.date + ".json";
}

}  // namespace plimsoll::bench
