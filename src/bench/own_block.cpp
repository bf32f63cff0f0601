// SPDX-License-Identifier: Apache-2.0
#include "bench/own_block.h"

#include <fmt/format.h>

#include <cmath>

#include "report/report.h"

namespace plimsoll::bench {
namespace {

using report::FigureBlock;
using report::two_decimals;

std::string rate_text(double rate) {
  return std::isinf(rate) ? "inf" : fmt::format("{:.2f}", rate);
}

std::string counted(const std::optional<std::int64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

void add_latencies(FigureBlock& block, const Summary& s) {
  const Samples& whole = s.of(Metric::kE2elIncludingClientQueue);
  block.row("Mean TTFT from schedule (ms):", s.ttft_from_schedule_ms.mean());
  block.row("P99 TTFT from schedule (ms):", s.ttft_from_schedule_ms.at(99));
  block.row("Mean E2EL from schedule (ms):", whole.mean());
  block.row("P99 E2EL from schedule (ms):", whole.at(99));
  block.row("Mean ITL per token (ms):", s.token_gap_ms.mean());
  block.row("P99 ITL per token (ms):", s.token_gap_ms.at(99));
  block.row(fmt::format("Gaps above {:g} ms:", s.stall_threshold_ms), s.stalls);
  block.row("Longest gap (ms):", s.longest_gap_ms);
}

void add_throughput(FigureBlock& block, const Summary& s) {
  block.row("Peak output in any second (tok/s):", s.peak_output_tokens_per_window);
  if (!s.steady) return;
  block.row("Steady window (s):", std::optional(s.steady->to_s - s.steady->from_s));
  block.row("Steady request throughput (req/s):", std::optional(s.steady->request_rate));
  block.row("Steady output throughput (tok/s):", std::optional(s.steady->output_rate));
}

/// In a closed loop the server's replies make the gaps between sends: they say nothing of the load.
bool is_open_loop(const Options& o) {
  return std::isfinite(o.request_rate) || o.ramp || o.dataset == Dataset::kTrace ||
         o.dataset == Dataset::kTimedTrace || o.dataset == Dataset::kBurstGpt;
}

void add_client(FigureBlock& block, const Options& options, const Summary& s) {
  if (is_open_loop(options)) {
    block.row("Request rate sent (RPS):", s.achieved_rate);
    block.row("Variation of send gaps (CV2):", s.interarrival_cv2);
  }
  block.row("P99 send lag (ms):", s.send_lag_ms.at(99));
  block.row("P99 client lag behind the kernel (ms):", s.client_lag_ms.at(99));
  block.row("Client CPU (% of one core):", std::optional(100 * s.client_cpu_share));
}

}  // namespace

std::string own_block(const RunResult& result) {
  const Summary& s = result.summary;
  FigureBlock block(50, 40, 10);
  block.rule(" plimsoll ", '=');
  block.row("Output tokens counted by:", to_string(s.count_source));
  block.row("Cached prompt tokens:", std::string_view(counted(s.cached_prompt_tokens)));
  add_latencies(block, s);
  add_throughput(block, s);
  block.row("Mean live tokens:", s.live_tokens_mean);
  block.row("Peak live tokens:", s.live_tokens_peak);
  if (result.server.memory_peak_bytes)
    block.row("Peak memory used (MiB):", std::optional(*result.server.memory_peak_bytes / (1024.0 * 1024.0)));
  add_client(block, result.options, s);
  block.rule("", '=');
  return block.text();
}

std::vector<std::string> remarks(const Summary& s) {
  std::vector<std::string> all;
  if (s.unfinished > 0)
    all.push_back(fmt::format("Interrupted: {} requests were not over and are in no figure.", s.unfinished));
  for (const ErrorCount& error : s.errors) {
    const std::string status = error.status == 0 ? "" : fmt::format(" (HTTP {})", error.status);
    std::string body = error.first_body.substr(0, error.first_body.find('\n')).substr(0, 160);
    all.push_back(fmt::format("{} failed: {}{}: {}", error.count, to_string(error.kind), status, body));
  }
  if (s.client_limited)
    all.push_back(fmt::format(
        "The client was the limit: it used {:.0f} % of a core, sends were {} ms late and its loop {} ms "
        "(p99). "
        "The figures above are not the server's.",
        100 * s.client_cpu_share, two_decimals(s.send_lag_ms.at(99)), two_decimals(s.loop_lag_ms.at(99))));
  if (s.client_starved)
    all.push_back(fmt::format(
        "This client was late though it used {:.0f} % of a core: others held the processor, or it was given "
        "none. Sends were {} ms late, reads {} ms, its loop {} ms (p99); {} chunks came together and have "
        "lost "
        "their own times.",
        100 * s.client_cpu_share, two_decimals(s.send_lag_ms.at(99)), two_decimals(s.client_lag_ms.at(99)),
        two_decimals(s.loop_lag_ms.at(99)), s.late_chunks));
  if (is_below_rate(s))
    all.push_back(fmt::format("Asked for {} requests/s, sent {:.2f}: see --max-concurrency and send lag.",
                              rate_text(s.requested_rate), *s.achieved_rate));
  if (s.sent_again > 0)
    all.push_back(
        fmt::format("{} requests were sent again: the server had closed the connection that was kept for "
                    "them. Without kept connections: --no-keep-alive.",
                    s.sent_again));
  if (s.overlong > 0)
    all.push_back(
        fmt::format("{} replies have more tokens than were asked for (counted by {}): is the count right?",
                    s.overlong, to_string(s.count_source)));
  if (s.completed > 0 && s.input_count_source == CountSource::kChunks)
    all.push_back("The server did not count the prompts: input tokens are estimated by words or bytes.");
  if (s.completed > 0 && s.count_source == CountSource::kChunks)
    all.push_back("The server sent no usage: tokens are counted as chunks; give --tokenizer to count them.");
  if (s.completed > 0 && s.count_source == CountSource::kTokenizer)
    all.push_back("The server sent no usage: tokens are counted by tokenizing the text again.");
  return all;
}

}  // namespace plimsoll::bench
