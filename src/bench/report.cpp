// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/backend.h"
#include "bench/bench.h"
#include "bench/own_block.h"

namespace plimsoll::bench {
namespace {

using report::FigureBlock;

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

}  // namespace

std::vector<Metric> shown_metrics(const Options& options) {
  if (is_pooling(options.backend)) return {Metric::kE2el};
  std::vector<Metric> shown;
  for (const MetricRow& row : metric_table()) {
    const bool has_queue =
        row.metric == Metric::kClientQueueTime || row.metric == Metric::kE2elIncludingClientQueue;
    if (has_queue && !options.max_concurrency) continue;
    if (row.metric == Metric::kE2elIncludingClientQueue && !std::isfinite(options.request_rate)) continue;
    if (options.metrics.has(row.metric)) shown.push_back(row.metric);
  }
  return shown;
}

std::string to_report(const RunResult& result) {
  // vLLM's widths: 50 in all, "{:<40} {:<10}".
  FigureBlock block(50, 40, 10);
  block.rule(" Serving Benchmark Result ", '=');
  add_counts(block, result);
  for (const Metric metric : shown_metrics(result.options))
    add_metric(block, row_of(metric), result.summary.of(metric), result.options.metrics.percentiles);
  block.rule("", '=');
  std::string text = block.text() + own_block(result);
  for (const std::string& remark : remarks(result.summary)) text += remark + "\n";
  for (const std::string& remark : result.unwatched) text += remark + "\n";
  return text;
}

}  // namespace plimsoll::bench
