// SPDX-License-Identifier: Apache-2.0
#include "bench/sweep.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "report/report.h"

namespace plimsoll::bench {
namespace {

constexpr std::size_t kMaxSteps = 100;
constexpr double kMaxConcurrency = 1'000'000;
constexpr double kMaxRate = 1e9;  // a send each nanosecond
constexpr double kMinRate = 1e-6;

std::optional<double> parse_value(LoadAxis axis, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const bool is_concurrency = axis == LoadAxis::kConcurrency;
  if (!(value >= (is_concurrency ? 1 : kMinRate) && value <= (is_concurrency ? kMaxConcurrency : kMaxRate)))
    return std::nullopt;
  if (is_concurrency && value != std::floor(value)) return std::nullopt;
  return value;
}

/// "A..B"; for a lone value both are it.
std::optional<std::pair<double, double>> parse_range(LoadAxis axis, std::string_view text) {
  const std::size_t dots = text.find("..");
  const auto least = parse_value(axis, text.substr(0, dots));
  const auto most = dots == text.npos ? least : parse_value(axis, text.substr(dots + 2));
  if (!least || !most || *least > *most) return std::nullopt;
  return std::pair(*least, *most);
}

/// Takes "concurrency=" or "rate=" off the front.
std::optional<LoadAxis> take_axis(std::string_view& text) {
  for (const LoadAxis axis : {LoadAxis::kConcurrency, LoadAxis::kRate}) {
    const std::string key = std::string(to_string(axis)) + "=";
    if (!text.starts_with(key)) continue;
    text.remove_prefix(key.size());
    return axis;
  }
  return std::nullopt;
}

std::string cell(const std::optional<double>& value) {
  return report::two_decimals(value);
}

std::string marks_of(const Summary& s) {
  std::string marks;
  if (s.client_limited) marks += '!';
  if (s.failed > 0) marks += 'f';
  if (is_below_rate(s)) marks += 'r';
  return marks;
}

}  // namespace

std::string_view to_string(LoadAxis axis) {
  return axis == LoadAxis::kConcurrency ? "concurrency" : "rate";
}

Result<std::optional<Sweep>> parse_sweep(const std::string& text) {
  if (text.empty()) return std::optional<Sweep>();
  const auto refuse = [&] {
    return fail(ErrorCode::kUsage, "\"" + text + "\" is no sweep of at most 100 steps", "--sweep",
                "write concurrency=1,2,4, concurrency=1..32 (doubling) or rate=0.5,1,2");
  };
  std::string_view rest = text;
  const auto axis = take_axis(rest);
  if (!axis || rest.empty()) return refuse();
  Sweep sweep{*axis, {}};
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const auto range = parse_range(*axis, rest.substr(0, comma));
    if (!range || (comma != rest.npos && comma + 1 == rest.size())) return refuse();
    for (double value = range->first; value < range->second; value *= 2) sweep.values.push_back(value);
    sweep.values.push_back(range->second);
    if (sweep.values.size() > kMaxSteps) return refuse();
    rest.remove_prefix(comma == rest.npos ? rest.size() : comma + 1);
  }
  return std::optional(std::move(sweep));
}

Result<std::optional<SearchRange>> parse_search(const std::string& text) {
  if (text.empty()) return std::optional<SearchRange>();
  std::string_view rest = text;
  const auto axis = take_axis(rest);
  const auto range = axis ? parse_range(*axis, rest) : std::nullopt;
  if (!range)
    return fail(ErrorCode::kUsage, "\"" + text + "\" is no range to search", "--search",
                "write concurrency=1..64 or rate=0.5..50");
  return std::optional(SearchRange{*axis, range->first, range->second});
}

Options at_load(const Options& options, LoadAxis axis, double value, std::int64_t index) {
  Options changed = options;
  if (axis == LoadAxis::kConcurrency)
    changed.max_concurrency = static_cast<std::int64_t>(value);
  else
    changed.request_rate = value;
  changed.seed += static_cast<std::uint64_t>(index);
  return changed;
}

std::string load_text(LoadAxis axis, double value) {
  return axis == LoadAxis::kConcurrency ? std::to_string(static_cast<std::int64_t>(value))
                                        : fmt::format("{}", value);
}

std::optional<double> Search::next() const {
  if (!best_) return first_miss_ ? std::nullopt : std::optional(range_.least);
  if (!first_miss_) {
    if (*best_ >= range_.most) return std::nullopt;
    return std::min(*best_ * 2, range_.most);
  }
  const bool is_whole = range_.axis == LoadAxis::kConcurrency;
  const double gap = *first_miss_ - *best_;
  if (gap <= tolerance_ * *best_ || (is_whole && gap <= 1)) return std::nullopt;
  const double middle = *best_ + gap / 2;
  return is_whole ? std::floor(middle) : middle;
}

void Search::tell(bool has_met) {
  (has_met ? best_ : first_miss_) = next();
}

std::string answer(const SearchRange& range, const Search& search, double goodput_share) {
  const auto text = [&](double value) { return load_text(range.axis, value); };
  const std::string share = fmt::format("{:.4g} % good requests", goodput_share * 100);
  if (!search.best())
    return fmt::format("No {} from {} on has {}: {} missed.\n", to_string(range.axis), text(range.least),
                       share, text(range.least));
  if (!search.first_miss())
    return fmt::format("Largest {} with {}: {}, the end of the range; the limit lies beyond it.\n",
                       to_string(range.axis), share, text(*search.best()));
  return fmt::format("Largest {} with {}: {}; the next one tried, {}, missed.\n", to_string(range.axis),
                     share, text(*search.best()), text(*search.first_miss()));
}

std::optional<double> good_share(const Summary& summary) {
  const std::int64_t sent = summary.completed + summary.failed;
  if (sent == 0) return std::nullopt;
  return static_cast<double>(summary.good) / static_cast<double>(sent);
}

std::string to_table(const std::vector<Step>& steps) {
  if (steps.empty()) return {};
  std::string out =
      fmt::format("{:>11} {:>8} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7}\n", to_string(steps.front().axis),
                  "req/s", "tok/s", "TTFT p50", "TTFT p99", "TPOT p50", "E2EL p99", "good %");
  std::string seen;
  for (const Step& step : steps) {
    const Summary& s = step.summary;
    const auto share = step.has_goals ? good_share(s) : std::nullopt;
    const std::string marks = marks_of(s);
    seen += marks;
    out += fmt::format("{:>11} {:>8} {:>9} {:>9} {:>9} {:>9} {:>10} {:>7}{}{}\n",
                       load_text(step.axis, step.value), cell(s.request_rate_done), cell(s.output_rate),
                       cell(s.of(Metric::kTtft).at(50)), cell(s.of(Metric::kTtft).at(99)),
                       cell(s.of(Metric::kTpot).at(50)), cell(s.of(Metric::kE2el).at(99)),
                       share ? fmt::format("{:.1f}", *share * 100) : "-", marks.empty() ? "" : " ", marks);
  }
  out += "Latencies in ms.";
  if (seen.find('!') != seen.npos) out += " !: the client was the limit.";
  if (seen.find('f') != seen.npos) out += " f: requests failed.";
  if (seen.find('r') != seen.npos) out += " r: the asked rate was not reached.";
  return out + "\n";
}

}  // namespace plimsoll::bench
