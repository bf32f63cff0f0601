// SPDX-License-Identifier: Apache-2.0
// From the records of a run to its figures: which request enters which sample, once. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/over_time.h"
#include "bench/record.h"
#include "bench/statistics.h"

namespace plimsoll::bench {

/// Latencies that a report can show, in vLLM's order.
enum class Metric { kTtft, kTpot, kItl, kE2el, kClientQueueTime, kE2elIncludingClientQueue };
constexpr std::size_t kNumMetrics = 6;

struct MetricRow {
  Metric metric;
  std::string_view key;    // ttft, as in mean_ttft_ms and --percentile-metrics
  std::string_view label;  // TTFT, as in "Mean TTFT (ms):"
  std::string_view title;  // of its section
};
/// The one table from metric to its names.
const std::array<MetricRow, kNumMetrics>& metric_table();

const MetricRow& row_of(Metric metric);

struct MetricSelection {
  std::vector<Metric> metrics = {Metric::kTtft, Metric::kTpot, Metric::kItl};
  std::vector<double> percentiles = {99};
  bool has(Metric metric) const;
};
/// "p99", "p99.9" without the p: as vLLM spells percentiles.
std::string percentile_name(double p);

/// A request is good when its `metric` (ttft, tpot, e2el; itl: the 99th percentile of its own token gaps) is
/// at most `limit_ms`.
struct Goal {
  Metric metric = Metric::kTtft;
  double limit_ms = 0;
};

/// What the run itself measured, beside its records.
struct RunFacts {
  double duration_s = 0;  // start to the last completion
  double cpu_s = 0;       // of the thread that sends and reads
  double requested_rate = 0;
  std::vector<Goal> goals;
  double stall_threshold_ms = 100;
  std::int64_t max_concurrency = 0;  // 0: no limit
  Samples loop_lag_ms;               // how late the loop woke when it had asked to
  Samples client_lag_ms;  // from the kernel's stamp of a read to the client's; empty where it gives none
  std::int64_t late_chunks = 0;
  std::int64_t unfinished = 0;  // requests that an interruption cut short; in no record
  bool has_tokenizer = false;   // prompts are counted with it where the server does not
};

/// What one of several endpoints did.
struct EndpointSummary {
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t output_tokens = 0;
  Samples ttft_ms;
  Samples e2el_ms;
};

struct ErrorCount {
  ErrorKind kind = ErrorKind::kNone;
  int status = 0;
  std::int64_t count = 0;
  std::string first_body;
};

struct Summary {
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  double duration_s = 0;
  std::int64_t input_tokens = 0;  // of completed requests
  std::int64_t output_tokens = 0;
  std::optional<double> request_rate_done;  // completed per second
  std::optional<double> output_rate;        // tokens per second
  std::optional<double> total_rate;
  std::optional<double> goodput;  // good requests per second
  std::int64_t good = 0;
  std::int64_t peak_output_tokens_per_bucket = 0;  // vLLM's buckets, but of tokens, not of chunks
  std::int64_t peak_output_tokens_per_window = 0;  // any second
  std::int64_t peak_concurrency = 0;               // exact

  /// By Metric. Milliseconds. ITL here is per chunk, as in vLLM.
  std::array<Samples, kNumMetrics> latency_ms;
  Samples token_gap_ms;    // per token: a chunk of 4 after 40 ms counts 10 four times
  Samples ttft_answer_ms;  // first content token
  Samples ttft_from_schedule_ms;
  Samples headers_ms;
  Samples send_lag_ms;  // sent minus eligible
  Samples loop_lag_ms;
  Samples client_lag_ms;         // of reads, behind the kernel
  std::int64_t late_chunks = 0;  // came together in one read because it was late: their own times are lost
  Samples connect_ms;            // from sent to the connection standing; near 0 on one that is used again
  std::int64_t stalls = 0;
  double stall_threshold_ms = 100;
  std::optional<double> longest_gap_ms;
  std::vector<ErrorCount> errors;
  std::vector<EndpointSummary> endpoints;  // by RequestRecord::target
  CountSource count_source = CountSource::kUsage;
  std::optional<SteadyWindow> steady;  // of runs with a concurrency limit
  std::int64_t unfinished = 0;
  std::int64_t sent_again = 0;  // after a kept connection had turned out to be closed
  std::int64_t overlong = 0;    // replies with more tokens than were asked for, by the count that was taken
  /// Where the counts of prompts come from; kChunks stands for an estimate by words or bytes.
  CountSource input_count_source = CountSource::kUsage;
  std::optional<double> live_tokens_mean;
  std::optional<double> live_tokens_p99;
  std::int64_t live_tokens_peak = 0;
  std::optional<std::int64_t> cached_prompt_tokens;  // nothing: the server never said

  double requested_rate = 0;            // infinity: all at once
  std::optional<double> achieved_rate;  // of session starts; without sessions every request is one
  std::optional<double> interarrival_cv2;
  double client_cpu_share = 0;  // of one core
  /// The client was too slow to be believed: sends or its loop were late. Only with half a core or more used:
  /// less means that somebody else held the processor. A rate that was not reached is no sign of its own: a
  /// slow server holds it down through --max-concurrency, and a slow client's sends are late.
  bool client_limited = false;
  /// As late, but with less than half a core: somebody else held the processor. Times of arrival are the
  /// kernel's and hold; sends were late, and chunks that came together (late_chunks) have lost theirs.
  bool client_starved = false;

  const Samples& of(Metric metric) const { return latency_ms[static_cast<std::size_t>(metric)]; }
};

Summary summarize(const std::vector<RequestRecord>& records, const RunFacts& facts);

/// Fewer requests (of sessions: first turns) left per second than were asked for, whoever held them back.
bool is_below_rate(const Summary& summary);

// Of one request; nothing where it is undefined. Milliseconds.
std::optional<double> ttft_ms(const RequestRecord& record);
std::optional<double> tpot_ms(const RequestRecord& record);
double e2el_ms(const RequestRecord& record);  // to the last token; to the end of the reply without tokens
std::vector<double> chunk_gaps_ms(const RequestRecord& record);
std::vector<Repeated> token_gaps_ms(const RequestRecord& record);

}  // namespace plimsoll::bench
