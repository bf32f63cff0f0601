// SPDX-License-Identifier: Apache-2.0
#include "bench/flags.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace plimsoll::bench {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(at);
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return parts;
}

std::optional<double> parse_double(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || std::isnan(value)) return std::nullopt;
  return value;
}

std::optional<Metric> metric_from(std::string_view key) {
  for (const MetricRow& row : metric_table())
    if (row.key == key) return row.metric;
  return std::nullopt;
}

Result<double> number(const std::string& text, const char* flag) {
  const auto value = parse_double(text);
  if (!value) return fail(ErrorCode::kUsage, "\"" + text + "\" is no number", flag);
  return *value;
}

Result<MetricSelection> parse_metrics(const TextFlags& flags) {
  MetricSelection selection{{}, {}};
  for (const std::string& key : split(flags.metrics, ',')) {
    const auto metric = metric_from(key);
    if (!metric)
      return fail(ErrorCode::kUsage, "\"" + key + "\" is no metric", "--percentile-metrics",
                  "use ttft, tpot, itl, e2el, client_queue_time or e2el_including_client_queue");
    selection.metrics.push_back(*metric);
  }
  for (const std::string& text : split(flags.percentiles, ',')) {
    const auto p = parse_double(text);
    if (!p || *p < 0 || *p > 100)
      return fail(ErrorCode::kUsage, "\"" + text + "\" is no percentile from 0 to 100",
                  "--metric-percentiles");
    selection.percentiles.push_back(*p);
  }
  return selection;
}

Result<std::vector<Goal>> parse_goals(const std::vector<std::string>& words) {
  std::vector<Goal> goals;
  for (const std::string& word : words) {
    const std::size_t colon = word.find(':');
    const auto metric = metric_from(std::string_view(word).substr(0, colon));
    const bool is_known = metric == Metric::kTtft || metric == Metric::kTpot || metric == Metric::kItl ||
                          metric == Metric::kE2el;
    const std::string limit = colon == word.npos ? "" : word.substr(colon + 1);
    const double limit_ms = parse_double(limit).value_or(-1);
    if (!is_known || limit_ms < 0)
      return fail(ErrorCode::kUsage, "\"" + word + "\" is no goal", "--goodput",
                  "write ttft:500 tpot:50 itl:100 e2el:3000, in milliseconds");
    goals.push_back({*metric, limit_ms});
  }
  return goals;
}

}  // namespace

Result<http::Headers> parse_headers(const std::vector<std::string>& words) {
  http::Headers headers;
  for (const std::string& word : words) {
    const std::size_t at = word.find_first_of("=:");
    if (at == word.npos || at == 0 || word.find_first_of("\r\n") != word.npos)
      return fail(ErrorCode::kUsage, "a header is not of the form NAME=VALUE", "--header");
    std::string_view value = std::string_view(word).substr(at + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    headers.emplace_back(word.substr(0, at), std::string(value));
  }
  return headers;
}

void add_key_from_environment(http::Headers& headers) {
  const char* key = std::getenv("OPENAI_API_KEY");
  if (key && *key && http::header(headers, "authorization").empty())
    headers.emplace_back("Authorization", std::string("Bearer ") + key);
}

Status apply(const TextFlags& flags, Options& options) {
  const auto backend = backend_from(flags.backend);
  if (!backend) return fail(ErrorCode::kUsage, "\"" + flags.backend + "\" is no backend", "--backend");
  const auto dataset = dataset_from(flags.dataset);
  if (!dataset) return fail(ErrorCode::kUsage, "\"" + flags.dataset + "\" is no data set", "--dataset-name");
  options.backend = *backend;
  options.dataset = *dataset;
  PLIMSOLL_TRY(options.request_rate, number(flags.request_rate, "--request-rate"));
  PLIMSOLL_TRY(options.burstiness, number(flags.burstiness, "--burstiness"));
  PLIMSOLL_TRY(options.metrics, parse_metrics(flags));
  PLIMSOLL_TRY(options.goodput, parse_goals(flags.goodput));
  PLIMSOLL_TRY(options.headers, parse_headers(flags.headers));
  return {};
}

}  // namespace plimsoll::bench
