// SPDX-License-Identifier: Apache-2.0
#include "bench/compare.h"

#include <fmt/format.h>

#include <algorithm>

namespace plimsoll::bench {
namespace {

struct Rate {
  const char* key;
  const char* unit;
  bool is_better_low;
};
constexpr std::array<Rate, 7> kRates = {{{"duration", "s", true},
                                         {"completed", "requests", false},
                                         {"failed", "requests", true},
                                         {"request_throughput", "req/s", false},
                                         {"request_goodput", "req/s", false},
                                         {"output_throughput", "tok/s", false},
                                         {"total_token_throughput", "tok/s", false}}};
constexpr std::array<const char*, kNumStatistics> kStatistics = {"mean", "median", "p99"};
// What should be the same when figures are held against each other.
constexpr const char* kSettings[] = {
    "backend",      "model_id",        "tokenizer_id",       "num_prompts",
    "request_rate", "max_concurrency", "total_input_tokens", "total_output_tokens"};
constexpr std::size_t kFewForP99 = 100;

void add_rates(Compared& out, const ResultFile& a, const ResultFile& b) {
  for (const Rate& rate : kRates) {
    Difference row{rate.key,
                   "",
                   rate.unit,
                   rate.is_better_low,
                   a.document[rate.key].as_double(),
                   b.document[rate.key].as_double(),
                   std::nullopt};
    if (row.a || row.b) out.differences.push_back(std::move(row));
  }
}

void add_latency(Compared& out, const ResultFile& a, const ResultFile& b, std::size_t latency,
                 std::uint64_t seed) {
  const FileLatency& in_a = a.latencies[latency];
  const FileLatency& in_b = b.latencies[latency];
  const auto of_a = figures_of(in_a.by_request);
  const auto of_b = figures_of(in_b.by_request);
  const auto resampled = resample_difference(in_a.by_request, in_b.by_request, seed);
  if (resampled)
    out.num_resamples = out.num_resamples == 0 ? resampled->num_resamples
                                               : std::min(out.num_resamples, resampled->num_resamples);
  for (std::size_t s = 0; s < kNumStatistics; ++s) {
    // Both from the arrays or both as stated: never one of each.
    const bool has_arrays = of_a && of_b;
    Difference row{std::string(kLatencyKeys[latency]),
                   kStatistics[s],
                   "ms",
                   true,
                   std::nullopt,
                   std::nullopt,
                   std::nullopt};
    row.a = has_arrays ? std::optional((*of_a)[s]) : in_a.stated[s];
    row.b = has_arrays ? std::optional((*of_b)[s]) : in_b.stated[s];
    if (resampled) row.interval = resampled->difference[s];
    if (row.a || row.b) out.differences.push_back(std::move(row));
  }
}

std::string words(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : dump(value);
}

void add_remarks(Compared& out, const ResultFile& a, const ResultFile& b) {
  for (const char* key : kSettings) {
    const Json& in_a = a.document[key];
    const Json& in_b = b.document[key];
    if (!(in_a == in_b))
      out.remarks.push_back(fmt::format("{} differs: {} and {}", key, words(in_a), words(in_b)));
  }
  for (const ResultFile* file : {&a, &b})
    if (file->latencies[0].by_request.empty())
      out.remarks.push_back(file->path +
                            " has no figures per request (--save-detailed): of latencies only the end-to-end "
                            "one has an interval");
  for (const ResultFile* file : {&a, &b}) {
    const std::string* backend = file->document["backend"].as_string();
    if (!file->is_ours && backend && backend->find("chat") != backend->npos)
      out.remarks.push_back(file->path +
                            " is another client's: vLLM's takes a chat's role chunk for its first token");
    const std::size_t n = file->latencies[0].by_request.size();
    if (n > 0 && n < kFewForP99)
      out.remarks.push_back(fmt::format(
          "{} has {} requests: p99 of fewer than 100 is nearly the largest value, its interval too narrow",
          file->path, n));
  }
}

Json side_json(const ResultFile& file) {
  Json side = Json::object({{"path", file.path}});
  for (const char* key :
       {"date", "label", "backend", "model_id", "num_prompts", "request_rate", "max_concurrency"})
    side.set(key, file.document[key]);
  return side;
}

std::string verdict(const Difference& row) {
  const auto is_beyond = row.is_beyond_noise();
  if (!is_beyond) return "";
  if (!*is_beyond) return "within noise";
  return (row.interval->high < 0) == row.is_better_low ? "better" : "worse";
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

}  // namespace

std::optional<double> Difference::percent() const {
  if (!a || !b || *a == 0) return std::nullopt;
  return (*b - *a) / *a * 100;
}

std::optional<bool> Difference::is_beyond_noise() const {
  if (!interval) return std::nullopt;
  return interval->low > 0 || interval->high < 0;
}

Compared compare(const ResultFile& a, const ResultFile& b, std::uint64_t seed) {
  Compared out;
  add_rates(out, a, b);
  for (std::size_t latency = 0; latency < kNumLatencies; ++latency) add_latency(out, a, b, latency, seed);
  add_remarks(out, a, b);
  return out;
}

Json to_json(const Compared& compared, const ResultFile& a, const ResultFile& b) {
  Json rows = Json::array();
  for (const Difference& row : compared.differences) {
    Json interval;
    if (row.interval) interval = Json(Json::Array{Json(row.interval->low), Json(row.interval->high)});
    rows.push_back(Json::object({{"metric", row.metric},
                                 {"statistic", row.statistic.empty() ? Json() : Json(row.statistic)},
                                 {"unit", row.unit},
                                 {"a", row.a},
                                 {"b", row.b},
                                 {"difference_percent", row.percent()},
                                 {"difference_interval_95", std::move(interval)},
                                 {"beyond_noise", row.is_beyond_noise()}}));
  }
  Json remarks = Json::array();
  for (const std::string& remark : compared.remarks) remarks.push_back(remark);
  return Json::object({{"schema", "plimsoll.bench_compare/1"},
                       {"a", side_json(a)},
                       {"b", side_json(b)},
                       {"differences", std::move(rows)},
                       {"resamples", compared.num_resamples},
                       {"remarks", std::move(remarks)}});
}

std::string to_text(const Compared& compared, const ResultFile& a, const ResultFile& b) {
  std::string out = "A: " + a.path + "\nB: " + b.path + "\n";
  out += fmt::format("{:<32}{:>12}{:>12}{:>10}  {:<22}\n", "", "A", "B", "change", "95 % of B - A");
  for (const Difference& row : compared.differences) {
    const std::string name =
        row.statistic.empty() ? row.metric : fmt::format("{} {}", row.metric, row.statistic);
    const auto percent = row.percent();
    const std::string interval =
        row.interval ? fmt::format("{:+.2f} to {:+.2f}", row.interval->low, row.interval->high) : "";
    out += fmt::format("{:<32}{:>12}{:>12}{:>10}  {:<22}{}", fmt::format("{} ({})", name, row.unit),
                       number(row.a), number(row.b), percent ? fmt::format("{:+.1f} %", *percent) : "-",
                       interval, verdict(row));
    while (out.ends_with(' ')) out.pop_back();
    out += '\n';
  }
  for (const std::string& remark : compared.remarks) out += remark + "\n";
  return out;
}

}  // namespace plimsoll::bench
