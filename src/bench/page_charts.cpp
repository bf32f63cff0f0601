// SPDX-License-Identifier: Apache-2.0
#include "bench/page_charts.h"

#include <fmt/format.h>

#include "bench/over_time.h"

namespace plimsoll::bench {
namespace {

constexpr std::size_t kMaxServerCharts = 24;

enum TimelineKind : std::size_t { kQueued, kPrefill, kDecoding, kFailed };

std::vector<report::Stretch> stretches_of(const RequestRecord& r) {
  std::vector<report::Stretch> row;
  if (r.sent_s > r.scheduled_s) row.push_back({r.scheduled_s, r.sent_s, kQueued});
  if (!r.is_success()) {
    row.push_back({r.sent_s, r.done_s, kFailed});
    return row;
  }
  row.push_back({r.sent_s, r.first_token_s.value_or(r.done_s), kPrefill});
  if (r.first_token_s) row.push_back({*r.first_token_s, r.last_token_s.value_or(r.done_s), kDecoding});
  return row;
}

std::vector<report::Point> levels(const std::vector<Change>& changes) {
  std::vector<report::Point> points;
  std::int64_t level = 0;
  for (const Change& change : changes) {
    level += change.by;
    // One point for an instant: what it ends at.
    if (!points.empty() && points.back().x == change.at_s)
      points.back().y = static_cast<double>(level);
    else
      points.push_back({change.at_s, static_cast<double>(level), {}});
  }
  return points;
}

std::string level_chart(const char* title, const char* unit, const std::vector<Change>& changes) {
  report::Chart chart{.title = title, .x_label = "s", .y_label = unit, .is_step = true};
  chart.series.push_back({title, levels(changes)});
  return report::to_svg(chart);
}

report::Series server_series(const Json& metric) {
  const std::string* endpoint = metric["endpoint"].as_string();
  report::Series series{endpoint ? *endpoint : "", {}};
  for (const Json& pair : metric["points"].items()) {
    if (pair.size() != 2) continue;
    const auto at = pair.items()[0].as_double();
    const auto value = pair.items()[1].as_double();
    if (at && value) series.points.push_back({*at, *value, {}});
  }
  return series;
}

}  // namespace

std::vector<report::Point> distribution_of(const Samples& samples) {
  std::vector<report::Point> points;
  const auto add = [&](double p) {
    if (const auto value = samples.at(p)) points.push_back({*value, p, {}});
  };
  for (int i = 0; i < 198; ++i) add(i * 0.5);
  for (int i = 0; i <= 50; ++i) add(99 + i * 0.02);
  return points;
}

std::string request_timeline(const std::vector<RequestRecord>& records) {
  report::Timeline timeline{
      "Requests",
      "s",
      {{"queued in the client", 7}, {"to the first token", 1}, {"decoding", 0}, {"failed", 4}},
      {}};
  for (const RequestRecord& record : records) timeline.rows.push_back(stretches_of(record));
  return report::to_svg(timeline);
}

std::string load_over_time(const std::vector<RequestRecord>& records) {
  return level_chart("Running requests", "requests", running_changes(records)) +
         level_chart("Live tokens", "tokens", live_token_changes(records));
}

std::string server_charts(const Json& server_metrics) {
  std::vector<report::Chart> charts;
  for (const Json& metric : server_metrics.items()) {
    const std::string* name = metric["name"].as_string();
    const std::string* unit = metric["unit"].as_string();
    if (!name) continue;
    const std::string title = "Server: " + *name;
    if (charts.empty() || charts.back().title != title) {
      if (charts.size() == kMaxServerCharts) break;
      charts.push_back({.title = title, .x_label = "s", .y_label = unit ? *unit : ""});
    }
    charts.back().series.push_back(server_series(metric));
  }
  std::string out;
  for (const report::Chart& chart : charts) out += report::to_svg(chart);
  return out;
}

}  // namespace plimsoll::bench
