// SPDX-License-Identifier: Apache-2.0
#include "bench/summary.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace plimsoll::bench {
namespace {

// Lags above this distort what users of a fast server would see (token gaps are 5-50 ms).
constexpr double kNoticeableLagMs = 5;
constexpr double kHalfACore = 0.5;
// More chunks than this part that came together in late reads: gaps between tokens cannot be believed.
constexpr double kLostChunks = 0.01;
// Below this share of the asked rate the report remarks on it: the jitter of a short run stays above.
constexpr double kRateTolerance = 0.95;

struct LatencyValues {
  std::array<std::vector<double>, kNumMetrics> by_metric;
  std::vector<Repeated> token_gaps;
  std::vector<double> answers;
  std::vector<double> from_schedule;
  std::vector<double> headers;
  std::vector<double>& of(Metric metric) { return by_metric[static_cast<std::size_t>(metric)]; }
};

void collect(const RequestRecord& record, LatencyValues& values) {
  const auto add = [](std::vector<double>& to, const std::optional<double>& value) {
    if (value) to.push_back(*value);
  };
  add(values.of(Metric::kTtft), ttft_ms(record));
  add(values.of(Metric::kTpot), tpot_ms(record));
  if (const auto first = ttft_ms(record))
    values.from_schedule.push_back(*first + (record.sent_s - record.scheduled_s) * 1e3);
  const double total = e2el_ms(record);
  const double queued = (record.sent_s - record.scheduled_s) * 1e3;
  values.of(Metric::kE2el).push_back(total);
  values.of(Metric::kClientQueueTime).push_back(queued);
  values.of(Metric::kE2elIncludingClientQueue).push_back(total + queued);
  for (double gap : chunk_gaps_ms(record)) values.of(Metric::kItl).push_back(gap);
  for (const Repeated& gap : token_gaps_ms(record)) values.token_gaps.push_back(gap);
  if (record.first_answer_s && record.output_tokens > 0)
    values.answers.push_back((*record.first_answer_s - record.sent_s) * 1e3);
  if (record.headers_s) values.headers.push_back((*record.headers_s - record.sent_s) * 1e3);
}

bool is_good(const RequestRecord& record, const std::vector<Goal>& goals) {
  return std::all_of(goals.begin(), goals.end(), [&](const Goal& goal) {
    switch (goal.metric) {
      case Metric::kTtft: {
        const auto value = ttft_ms(record);
        return value && *value <= goal.limit_ms;
      }
      case Metric::kTpot:
        return tpot_ms(record).value_or(0) <= goal.limit_ms;  // one token: 0, as in vLLM
      case Metric::kE2el:
        return e2el_ms(record) <= goal.limit_ms;
      case Metric::kItl:
        return Samples(token_gaps_ms(record)).at(99).value_or(0) <= goal.limit_ms;
      case Metric::kClientQueueTime:
      case Metric::kE2elIncludingClientQueue:
        break;
    }
    check_failed("goal.metric", __FILE__, __LINE__, "a goal is of ttft, tpot, itl or e2el");
  });
}

void count_error(std::vector<ErrorCount>& errors, const RequestRecord& record) {
  for (ErrorCount& known : errors) {
    if (known.kind == record.error && known.status == record.status) {
      ++known.count;
      return;
    }
  }
  errors.push_back({record.error, record.status, 1, record.error_text});
}

/// Mean and p99 are over time, not over requests.
void find_live_tokens(const std::vector<RequestRecord>& records, Summary& summary) {
  const std::vector<Change> steps = live_token_changes(records);
  std::vector<std::pair<std::int64_t, double>> levels;  // tokens, seconds at that level
  std::int64_t now = 0;
  double area = 0;
  double span = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    now += steps[i].by;
    summary.live_tokens_peak = std::max(summary.live_tokens_peak, now);
    if (i + 1 == steps.size()) break;
    const double seconds = steps[i + 1].at_s - steps[i].at_s;
    levels.emplace_back(now, seconds);
    area += static_cast<double>(now) * seconds;
    span += seconds;
  }
  if (span <= 0) return;
  summary.live_tokens_mean = area / span;
  std::sort(levels.begin(), levels.end());
  double passed = 0;
  for (const auto& [tokens, seconds] : levels) {
    passed += seconds;
    if (passed < 0.99 * span) continue;
    summary.live_tokens_p99 = static_cast<double>(tokens);
    break;
  }
}

void find_peaks(const std::vector<RequestRecord>& records, Summary& summary) {
  std::vector<std::pair<double, double>> spans;
  std::vector<Weighted> tokens;
  double origin = 0;
  bool has_origin = false;
  for (const RequestRecord& record : records) {
    spans.emplace_back(record.sent_s, record.done_s);
    if (!record.is_success()) continue;
    origin = has_origin ? std::min(origin, record.sent_s) : record.sent_s;
    has_origin = true;
    for (const Chunk& chunk : record.chunks) tokens.push_back({chunk.at_s, chunk.tokens});
  }
  summary.peak_concurrency = peak_overlap(spans);
  summary.peak_output_tokens_per_bucket = peak_per_bucket(tokens, origin);
  summary.peak_output_tokens_per_window = peak_per_window(std::move(tokens));
}

void find_endpoints(const std::vector<RequestRecord>& records, Summary& summary) {
  struct Values {
    std::vector<double> ttft;
    std::vector<double> e2el;
  };
  std::vector<Values> values;
  for (const RequestRecord& record : records) {
    if (record.target >= values.size()) values.resize(record.target + 1);
    summary.endpoints.resize(values.size());
    EndpointSummary& endpoint = summary.endpoints[record.target];
    ++(record.is_success() ? endpoint.completed : endpoint.failed);
    if (!record.is_success()) continue;
    endpoint.output_tokens += record.output_tokens;
    if (const auto first = ttft_ms(record)) values[record.target].ttft.push_back(*first);
    values[record.target].e2el.push_back(e2el_ms(record));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    summary.endpoints[i].ttft_ms = Samples(values[i].ttft);
    summary.endpoints[i].e2el_ms = Samples(values[i].e2el);
  }
}

/// Send lags of the requests before which none had been due for a millisecond: of those due together the
/// later ones wait for the earlier ones to be written, which says nothing of the client.
Samples lag_of_lone_sends_ms(const std::vector<RequestRecord>& records) {
  std::vector<std::pair<double, double>> sends;  // eligible, sent
  for (const RequestRecord& record : records) sends.emplace_back(record.eligible_s, record.sent_s);
  std::sort(sends.begin(), sends.end());
  std::vector<double> lags;
  for (std::size_t i = 1; i < sends.size(); ++i)
    if (sends[i].first - sends[i - 1].first > 1e-3) lags.push_back((sends[i].second - sends[i].first) * 1e3);
  return Samples(lags);
}

double num_chunks(const std::vector<RequestRecord>& records) {
  std::size_t chunks = 0;
  for (const RequestRecord& record : records) chunks += record.chunks.size();
  return static_cast<double>(chunks);
}

void find_load(const std::vector<RequestRecord>& records, const RunFacts& facts, Summary& summary) {
  std::vector<double> sent;
  std::vector<double> lag;
  std::vector<double> connects;
  for (const RequestRecord& record : records) {
    if (record.follows < 0) sent.push_back(record.sent_s);  // a rate is of sessions, not of their turns
    if (record.was_sent_again) ++summary.sent_again;
    lag.push_back((record.sent_s - record.eligible_s) * 1e3);
    if (record.connected_s) connects.push_back((*record.connected_s - record.sent_s) * 1e3);
  }
  std::sort(sent.begin(), sent.end());
  summary.achieved_rate = rate_of(sent);
  summary.interarrival_cv2 = squared_variation_of_gaps(sent);
  summary.send_lag_ms = Samples(std::move(lag));
  summary.connect_ms = Samples(std::move(connects));
  summary.loop_lag_ms = facts.loop_lag_ms;
  summary.client_lag_ms = facts.client_lag_ms;
  summary.late_chunks = facts.late_chunks;
  summary.unfinished = facts.unfinished;
  summary.requested_rate = facts.requested_rate;
  summary.client_cpu_share = facts.duration_s > 0 ? facts.cpu_s / facts.duration_s : 0;
  const bool is_late = lag_of_lone_sends_ms(records).at(99).value_or(0) > kNoticeableLagMs ||
                       summary.loop_lag_ms.at(99).value_or(0) > kNoticeableLagMs ||
                       static_cast<double>(summary.late_chunks) > kLostChunks * num_chunks(records);
  const bool is_busy = summary.client_cpu_share >= kHalfACore;
  summary.client_limited = is_busy && is_late;
  summary.client_starved = !is_busy && is_late;
}

}  // namespace

const std::array<MetricRow, kNumMetrics>& metric_table() {
  static constexpr std::array<MetricRow, kNumMetrics> kTable = {{
      {Metric::kTtft, "ttft", "TTFT", "Time to First Token"},
      {Metric::kTpot, "tpot", "TPOT", "Time per Output Token (excl. 1st token)"},
      {Metric::kItl, "itl", "ITL", "Inter-token Latency"},
      {Metric::kE2el, "e2el", "E2EL", "End-to-end Latency"},
      {Metric::kClientQueueTime, "client_queue_time", "Client Queue Time", "Client-side Queueing"},
      {Metric::kE2elIncludingClientQueue, "e2el_including_client_queue", "E2EL incl. Client Queue",
       "Queue-inclusive End-to-end Latency"},
  }};
  return kTable;
}

const MetricRow& row_of(Metric metric) {
  return metric_table()[static_cast<std::size_t>(metric)];
}

bool MetricSelection::has(Metric metric) const {
  return std::find(metrics.begin(), metrics.end(), metric) != metrics.end();
}

std::string percentile_name(double p) {
  return p == std::floor(p) ? std::to_string(static_cast<int>(p)) : format_double(p);
}

std::optional<double> ttft_ms(const RequestRecord& record) {
  if (!record.first_token_s || record.output_tokens < 1) return std::nullopt;
  return (*record.first_token_s - record.sent_s) * 1e3;
}

std::optional<double> tpot_ms(const RequestRecord& record) {
  if (!record.first_token_s || record.output_tokens < 2) return std::nullopt;
  return (*record.last_token_s - *record.first_token_s) * 1e3 / static_cast<double>(record.output_tokens - 1);
}

double e2el_ms(const RequestRecord& record) {
  return (record.last_token_s.value_or(record.done_s) - record.sent_s) * 1e3;
}

std::vector<double> chunk_gaps_ms(const RequestRecord& record) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < record.chunks.size(); ++i)
    gaps.push_back((record.chunks[i].at_s - record.chunks[i - 1].at_s) * 1e3);
  return gaps;
}

std::vector<Repeated> token_gaps_ms(const RequestRecord& record) {
  std::vector<Repeated> gaps;
  if (record.chunks.empty()) return gaps;
  double since = record.chunks.front().at_s;
  for (std::size_t i = 1; i < record.chunks.size(); ++i) {
    const Chunk& chunk = record.chunks[i];
    if (chunk.tokens < 1) continue;  // a piece of a token: the gap goes on
    const double each = (chunk.at_s - since) * 1e3 / static_cast<double>(chunk.tokens);
    gaps.push_back({each, chunk.tokens});
    since = chunk.at_s;
  }
  return gaps;
}

bool is_below_rate(const Summary& summary) {
  return std::isfinite(summary.requested_rate) && summary.achieved_rate &&
         *summary.achieved_rate < kRateTolerance * summary.requested_rate;
}

Summary summarize(const std::vector<RequestRecord>& records, const RunFacts& facts) {
  Summary summary;
  LatencyValues values;
  summary.duration_s = facts.duration_s;
  summary.stall_threshold_ms = facts.stall_threshold_ms;
  for (const RequestRecord& record : records) {
    if (!record.is_success()) {
      ++summary.failed;
      count_error(summary.errors, record);
      continue;
    }
    ++summary.completed;
    summary.input_tokens += record.prompt_tokens;
    summary.output_tokens += record.output_tokens;
    if (record.cached_prompt_tokens)
      summary.cached_prompt_tokens = summary.cached_prompt_tokens.value_or(0) + *record.cached_prompt_tokens;
    summary.count_source = std::max(summary.count_source, record.count_source);
    if (record.max_output_tokens > 0 && record.output_tokens > record.max_output_tokens) ++summary.overlong;
    if (!record.usage_prompt_tokens)
      summary.input_count_source = facts.has_tokenizer ? CountSource::kTokenizer : CountSource::kChunks;
    if (is_good(record, facts.goals)) ++summary.good;
    collect(record, values);
  }
  for (double gap : values.of(Metric::kItl)) {
    if (gap > facts.stall_threshold_ms) ++summary.stalls;
    summary.longest_gap_ms = std::max(summary.longest_gap_ms.value_or(0), gap);
  }
  for (std::size_t i = 0; i < kNumMetrics; ++i)
    summary.latency_ms[i] = Samples(std::move(values.by_metric[i]));
  summary.token_gap_ms = Samples(std::move(values.token_gaps));
  summary.ttft_answer_ms = Samples(std::move(values.answers));
  summary.ttft_from_schedule_ms = Samples(values.from_schedule);
  summary.headers_ms = Samples(std::move(values.headers));
  if (facts.duration_s > 0) {
    const auto per_second = [&](std::int64_t n) { return static_cast<double>(n) / facts.duration_s; };
    summary.request_rate_done = per_second(summary.completed);
    summary.output_rate = per_second(summary.output_tokens);
    summary.total_rate = per_second(summary.input_tokens + summary.output_tokens);
    if (!facts.goals.empty()) summary.goodput = per_second(summary.good);
  }
  find_peaks(records, summary);
  find_live_tokens(records, summary);
  find_endpoints(records, summary);
  find_load(records, facts, summary);
  summary.steady = steady_window(records, facts.max_concurrency);
  return summary;
}

}  // namespace plimsoll::bench
