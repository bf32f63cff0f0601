// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/bench.h"

namespace plimsoll::bench {
namespace {

using report::FigureBlock;
using report::two_decimals;

void add_counts(FigureBlock& block, const RunResult& result) {
  const Options& o = result.options;
  const Summary& s = result.summary;
  block.row("Successful requests:", s.completed);
  block.row("Failed requests:", s.failed);
  if (o.max_concurrency) block.row("Maximum request concurrency:", *o.max_concurrency);
  if (std::isfinite(o.request_rate))
    block.row("Request rate configured (RPS):", std::optional(o.request_rate));
  block.row("Benchmark duration (s):", std::optional(s.duration_s));
  block.row("Total input tokens:", s.input_tokens);
  block.row("Total generated tokens:", s.output_tokens);
  block.row("Request throughput (req/s):", s.request_rate_done);
  if (!o.goodput.empty()) block.row("Request goodput (req/s):", s.goodput);
  block.row("Output token throughput (tok/s):", s.output_rate);
  block.row("Peak output token throughput (tok/s):",
            std::optional(static_cast<double>(s.peak_output_tokens_per_bucket)));
  block.row("Peak concurrent requests:", std::optional(static_cast<double>(s.peak_concurrency)));
  block.row("Total token throughput (tok/s):", s.total_rate);
}

void add_metric(FigureBlock& block, const MetricRow& row, const Samples& samples,
                const std::vector<double>& percentiles) {
  block.rule(row.title, '-');
  block.row(fmt::format("Mean {} (ms):", row.label), samples.mean());
  block.row(fmt::format("Median {} (ms):", row.label), samples.at(50));
  for (double p : percentiles)
    block.row(fmt::format("P{} {} (ms):", percentile_name(p), row.label), samples.at(p));
}

/// One line for each thing that a reader of the block must know to believe it.
std::string notes(const Summary& s) {
  std::string out;
  for (const ErrorCount& error : s.errors) {
    const std::string status = error.status == 0 ? "" : fmt::format(" (HTTP {})", error.status);
    std::string body = error.first_body.substr(0, error.first_body.find('\n')).substr(0, 160);
    out += fmt::format("{} failed: {}{}: {}\n", error.count, to_string(error.kind), status, body);
  }
  if (s.client_limited)
    out += fmt::format(
        "The client was the limit: it used {:.0f} % of a core, sends were {} ms late and its loop {} ms "
        "(p99). "
        "The figures above are not the server's.\n",
        100 * s.client_cpu_share, two_decimals(s.send_lag_ms.at(99)), two_decimals(s.loop_lag_ms.at(99)));
  if (is_below_rate(s))
    out += fmt::format("Asked for {:.2f} requests/s, sent {:.2f}: see --max-concurrency and send lag.\n",
                       s.requested_rate, *s.achieved_rate);
  if (s.completed > 0 && s.count_source == CountSource::kChunks)
    out += "The server sent no usage: tokens are counted as chunks; give --tokenizer to count them.\n";
  if (s.completed > 0 && s.count_source == CountSource::kTokenizer)
    out += "The server sent no usage: tokens are counted by tokenizing the text again.\n";
  return out;
}

}  // namespace

std::string to_report(const RunResult& result) {
  // vLLM's widths: 50 in all, "{:<40} {:<10}".
  FigureBlock block(50, 40, 10);
  block.rule(" Serving Benchmark Result ", '=');
  add_counts(block, result);
  const MetricSelection& selected = result.options.metrics;
  for (const MetricRow& row : metric_table())
    if (selected.has(row.metric)) add_metric(block, row, result.summary.of(row.metric), selected.percentiles);
  block.rule("", '=');
  return block.text() + notes(result.summary);
}

}  // namespace plimsoll::bench
