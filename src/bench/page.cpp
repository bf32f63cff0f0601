// SPDX-License-Identifier: Apache-2.0
#include "bench/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/own_block.h"
#include "bench/page_charts.h"
#include "bench/secrets.h"
#include "report/report.h"

namespace plimsoll::bench {
namespace {

using report::escaped_markup;
using report::two_decimals;

std::string cell(std::string_view text) {
  return "<td>" + escaped_markup(text) + "</td>";
}

std::string cell(const std::optional<double>& value) {
  return cell(std::string_view(two_decimals(value)));
}

std::string heading() {
  std::string out = "<tr><th>run</th><th>done</th><th>failed</th><th>req/s</th><th>tok/s</th>";
  for (const char* metric : {"TTFT", "TPOT", "ITL per token", "E2EL"})
    for (const char* statistic : {"mean", "p50", "p99"})
      out += fmt::format("<th>{} {}</th>", metric, statistic);
  return out + "<th>goodput req/s</th><th>send lag p99</th><th>client CPU %</th></tr>\n";
}

std::string row_of(const std::string& name, const Summary& s) {
  std::string out = "<tr>" + cell(name) + cell(std::to_string(s.completed)) + cell(std::to_string(s.failed)) +
                    cell(s.request_rate_done) + cell(s.output_rate);
  for (const Samples* samples :
       {&s.of(Metric::kTtft), &s.of(Metric::kTpot), &s.token_gap_ms, &s.of(Metric::kE2el)})
    out += cell(samples->mean()) + cell(samples->at(50)) + cell(samples->at(99));
  return out + cell(s.goodput) + cell(s.send_lag_ms.at(99)) + cell(std::optional(100 * s.client_cpu_share)) +
         "</tr>\n";
}

std::string errors_table(const Summary& s) {
  if (s.errors.empty()) return {};
  std::string out =
      "<h2>Failed requests</h2>\n<div class=\"wide\"><table><tr><th>kind</th><th>HTTP</th><th>requests</th>"
      "<th>first answer</th></tr>\n";
  for (const ErrorCount& error : s.errors)
    out += "<tr>" + cell(to_string(error.kind)) +
           cell(error.status == 0 ? "-" : std::to_string(error.status)) + cell(std::to_string(error.count)) +
           "<td class=\"text\">" + escaped_markup(std::string_view(error.first_body).substr(0, 500)) +
           "</td></tr>\n";
  return out + "</table></div>\n";
}

std::string remarks_list(const Summary& s) {
  std::string out;
  for (const std::string& remark : remarks(s)) out += "<p class=\"bad\">" + escaped_markup(remark) + "</p>\n";
  return out;
}

}  // namespace

void Page::add(const RunResult& result, const Json& document, const std::string& name, double load) {
  const Summary& s = result.summary;
  if (loads_.empty()) {
    const Options& o = result.options;
    title_ = "plimsoll bench: " + o.model;
    subtitle_ = fmt::format("{}{}, {}, backend {}, {} requests", o.base_urls.front(),
                            without_query(o.endpoint), result.date, to_string(o.backend), o.num_prompts);
  }
  rows_ += row_of(name, s);
  // The first run stands open; the others open at a click.
  sections_ += fmt::format("<details{}><summary>{}</summary>\n", loads_.empty() ? " open=\"open\"" : "",
                           escaped_markup(name));
  sections_ += remarks_list(s) + errors_table(s) + "<div class=\"charts\">\n" +
               request_timeline(result.records) + load_over_time(result.records) +
               server_charts(document.at_pointer("/plimsoll/server_metrics")) + "</div></details>\n";
  // A search jumps to and fro; lines go from the least load to the most.
  const auto at = std::upper_bound(loads_.begin(), loads_.end(), load,
                                   [](double value, const Load& other) { return value < other.load; });
  loads_.insert(at, {name, load, s});
}

std::string Page::sweep_charts() const {
  if (loads_.size() < 2) return {};
  struct Line {
    const char* name;
    Metric metric;
    double percentile;
  };
  const auto against_throughput = [&](const char* title, const std::vector<Line>& lines) {
    report::Chart chart{.title = title, .x_label = "output tokens/s", .y_label = "ms", .has_dots = true};
    for (const Line& line : lines) {
      report::Series series{line.name, {}};
      for (const Load& load : loads_) {
        const auto x = load.summary.output_rate;
        const auto y = load.summary.of(line.metric).at(line.percentile);
        if (x && y)
          series.points.push_back({*x, *y, fmt::format("{}: {:.1f} tok/s, {:.2f} ms", load.name, *x, *y)});
      }
      chart.series.push_back(std::move(series));
    }
    return report::to_svg(chart);
  };
  report::Chart throughput{.title = "Throughput",
                           .x_label = "load",
                           .y_label = "output tokens/s",
                           .has_log_x = true,
                           .has_dots = true};
  throughput.series.push_back({"output tokens/s", {}});
  for (const Load& load : loads_)
    if (load.summary.output_rate)
      throughput.series[0].points.push_back(
          {load.load, *load.summary.output_rate,
           fmt::format("{}: {:.1f} tok/s", load.name, *load.summary.output_rate)});
  return "<h2>Throughput against latency</h2>\n<div class=\"charts\">\n" +
         against_throughput("Time to first token", {{"p50", Metric::kTtft, 50}, {"p99", Metric::kTtft, 99}}) +
         against_throughput("Time per output token",
                            {{"p50", Metric::kTpot, 50}, {"p99", Metric::kTpot, 99}}) +
         against_throughput("End to end", {{"p50", Metric::kE2el, 50}, {"p99", Metric::kE2el, 99}}) +
         report::to_svg(throughput) + "</div>\n";
}

std::string Page::distributions() const {
  using Pick = const Samples& (*)(const Summary&);
  const std::array<std::pair<const char*, Pick>, 4> metrics = {{
      {"Time to first token", [](const Summary& s) -> const Samples& { return s.of(Metric::kTtft); }},
      {"Time per output token", [](const Summary& s) -> const Samples& { return s.of(Metric::kTpot); }},
      {"Gap between tokens", [](const Summary& s) -> const Samples& { return s.token_gap_ms; }},
      {"End to end", [](const Summary& s) -> const Samples& { return s.of(Metric::kE2el); }},
  }};
  std::string out = "<h2>Distributions</h2>\n<div class=\"charts\">\n";
  for (const auto& [title, pick] : metrics) {
    report::Chart chart{.title = title, .x_label = "ms", .y_label = "% at or below"};
    for (const Load& load : loads_) chart.series.push_back({load.name, distribution_of(pick(load.summary))});
    out += report::to_svg(chart);
  }
  return out + "</div>\n";
}

std::string Page::html(const std::string& closing_text) const {
  std::string body = "<h1>" + escaped_markup(title_) + "</h1>\n<p class=\"soft\">" +
                     escaped_markup(subtitle_) + "</p>\n<div class=\"wide\"><table>" + heading() + rows_ +
                     "</table></div>\n<p class=\"soft\">Latencies in ms.</p>\n";
  if (!closing_text.empty()) body += "<p>" + escaped_markup(closing_text) + "</p>\n";
  return report::to_page(title_, body + sweep_charts() + distributions() + sections_);
}

}  // namespace plimsoll::bench
