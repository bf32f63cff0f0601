// SPDX-License-Identifier: Apache-2.0
#include "workload/trace_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace plimsoll::workload {
namespace {

constexpr std::size_t kMaxRows = 20'000'000;
constexpr std::size_t kMaxBlockIds = 200'000'000;
constexpr std::int64_t kMaxTokens = 1'000'000'000;
constexpr double kMaxSeconds = 4e9;  // the year 2096, for times that count from 1970

/// Reads exactly `digits` digits off the front.
std::optional<std::int64_t> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text.substr(0, digits)) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + (c - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text[0]) == any_of.npos) return false;
  text.remove_prefix(1);
  return true;
}

/// Up to the end of a year, counted from the year 0.
std::int64_t leap_days(std::int64_t year) {
  return year / 4 - year / 100 + year / 400;
}

bool is_leap(std::int64_t year) {
  return leap_days(year) != leap_days(year - 1);
}

std::int64_t days_in(std::int64_t year, std::int64_t month) {
  constexpr std::int64_t kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[month - 1] + (is_leap(year) && month == 2 ? 1 : 0);
}

/// Days from 1970-01-01 in the Gregorian calendar, by counting leap days before the year.
std::int64_t days_since_1970(std::int64_t year, std::int64_t month, std::int64_t day) {
  std::int64_t days = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969) + (day - 1);
  for (std::int64_t before = 1; before < month; ++before) days += days_in(year, before);
  return days;
}

/// ".6805900": up to nine digits; none at all is 0.
std::optional<std::int64_t> take_fraction(std::string_view& text) {
  if (!take(text, ".")) return 0;
  std::int64_t nanoseconds = 0;
  std::size_t digits = 0;
  for (; !text.empty() && text[0] >= '0' && text[0] <= '9'; text.remove_prefix(1), ++digits)
    if (digits < 9) nanoseconds = nanoseconds * 10 + (text[0] - '0');
  if (digits == 0) return std::nullopt;
  for (; digits < 9; ++digits) nanoseconds *= 10;
  return nanoseconds;
}

/// "", "Z", "+02:00": seconds east of Greenwich.
std::optional<std::int64_t> take_zone(std::string_view& text) {
  if (text.empty() || text == "Z") {
    text = {};
    return 0;
  }
  const bool is_west = text[0] == '-';
  if (!take(text, "+-")) return std::nullopt;
  const auto hours = take_digits(text, 2);
  take(text, ":");
  const auto minutes = take_digits(text, 2);
  if (!hours || !minutes || *hours > 14 || *minutes > 59 || !text.empty()) return std::nullopt;
  return (is_west ? -1 : 1) * (*hours * 3600 + *minutes * 60);
}

}  // namespace

std::optional<std::int64_t> nanoseconds_of_date(std::string_view text) {
  const auto year = take_digits(text, 4);
  const bool has_month = take(text, "-");
  const auto month = take_digits(text, 2);
  const bool has_day = take(text, "-");
  const auto day = take_digits(text, 2);
  const bool has_time = take(text, " T");
  const auto hour = take_digits(text, 2);
  const bool has_minute = take(text, ":");
  const auto minute = take_digits(text, 2);
  const bool has_second = take(text, ":");
  const auto second = take_digits(text, 2);
  if (!second || !has_month || !has_day || !has_time || !has_minute || !has_second) return std::nullopt;
  if (!year || !month || !day || !hour || !minute) return std::nullopt;
  if (*year < 1971 || *year > 2095 || *month < 1 || *month > 12 || *day < 1 ||
      *day > days_in(*year, *month) || *hour > 23 || *minute > 59 || *second > 60)
    return std::nullopt;
  const auto fraction = take_fraction(text);
  const auto zone_s = take_zone(text);
  if (!fraction || !zone_s) return std::nullopt;
  const std::int64_t seconds =
      days_since_1970(*year, *month, *day) * 86'400 + *hour * 3600 + *minute * 60 + *second - *zone_s;
  return seconds * 1'000'000'000 + *fraction;
}

std::optional<std::int64_t> nanoseconds_of(double amount, double unit_s) {
  const double seconds = amount * unit_s;
  if (!(seconds >= 0 && seconds <= kMaxSeconds)) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(seconds * 1e9));
}

Status TraceRows::add(const TraceRow& row, const std::string& where) {
  const auto is_length = [](std::int64_t tokens) { return tokens >= 0 && tokens <= kMaxTokens; };
  if (!is_length(row.input_tokens) || !is_length(row.output_tokens))
    return fail(ErrorCode::kMalformed, "a length is not from 0 to 1,000,000,000 tokens", where);
  if (row.input_tokens == 0 || row.output_tokens == 0) {
    ++trace_->num_left_out;
    return {};
  }
  std::vector<std::int64_t>& ids = trace_->block_ids;
  if (times_ns_.size() == kMaxRows || ids.size() + row.block_ids.size() > kMaxBlockIds)
    return fail(ErrorCode::kMalformed, "a trace has more than 20,000,000 rows or 200,000,000 block ids",
                where);
  if (trace_->block_tokens > 0) {
    const std::int64_t needed = (row.input_tokens - 1) / trace_->block_tokens + 1;
    if (std::ssize(row.block_ids) > needed)
      return fail(ErrorCode::kMalformed,
                  std::to_string(row.block_ids.size()) + " blocks of " +
                      std::to_string(trace_->block_tokens) + " tokens are more than a prompt of " +
                      std::to_string(row.input_tokens) + " tokens has",
                  where, "give the tokens of a block with --timed-trace-chunk-hash-size");
  }
  trace_->requests.push_back(
      {0, row.input_tokens, row.output_tokens, std::ssize(ids), std::ssize(row.block_ids)});
  ids.insert(ids.end(), row.block_ids.begin(), row.block_ids.end());
  times_ns_.push_back(row.at_ns);
  return {};
}

Status TraceRows::finish(const std::string& name) {
  if (times_ns_.empty())
    return fail(ErrorCode::kMalformed,
                "the trace holds no usable row; " + std::to_string(trace_->num_left_out) + " were left out",
                name);
  std::vector<std::size_t> order(times_ns_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return times_ns_[a] < times_ns_[b]; });
  std::vector<TraceRequest> sorted;
  sorted.reserve(order.size());
  for (const std::size_t row : order) {
    sorted.push_back(trace_->requests[row]);
    sorted.back().at_s = static_cast<double>(times_ns_[row] - times_ns_[order.front()]) * 1e-9;
  }
  trace_->requests = std::move(sorted);
  return {};
}

}  // namespace plimsoll::workload
