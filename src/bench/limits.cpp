// SPDX-License-Identifier: Apache-2.0
#include "bench/limits.h"

#include <charconv>
#include <cmath>

namespace plimsoll::bench {
namespace {

std::string_view trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

bool is_broken(double value, const Limit& limit) {
  switch (limit.comparison) {
    case Comparison::kAbove:
      return value > limit.value;
    case Comparison::kAtLeast:
      return value >= limit.value;
    case Comparison::kBelow:
      return value < limit.value;
    case Comparison::kAtMost:
      return value <= limit.value;
  }
  return false;
}

std::string pointer_of(std::string_view key) {
  std::string pointer = "/" + std::string(key);
  for (char& c : pointer)
    if (c == '.') c = '/';
  return pointer;
}

/// The figure that `key` names; a whole key wins over a path, since "p99.9_ttft_ms" has a dot of its own.
const Json* find(const Json& result, const std::string& key) {
  if (result.contains(key)) return &result[key];
  const std::size_t dot = key.find_last_of('.');
  if (dot == key.npos) return nullptr;
  const Json& parent = result.at_pointer(pointer_of(std::string_view(key).substr(0, dot)));
  const std::string_view last = std::string_view(key).substr(dot + 1);
  return parent.contains(last) ? &parent[last] : nullptr;
}

bool is_of_the_server(const std::string& key) {
  return key.starts_with("plimsoll.errors.") || key.starts_with("plimsoll.memory_used_bytes.") ||
         key.starts_with("plimsoll.server_metrics.");
}

}  // namespace

Result<Limit> parse_limit(std::string_view text) {
  const auto refuse = [&] {
    return fail(ErrorCode::kUsage, "\"" + std::string(text) + "\" is no limit", "--fail-if",
                "write a key of the result, a comparison and a number: p99_ttft_ms>500");
  };
  const std::size_t at = text.find_first_of("<>");
  if (at == text.npos || at == 0) return refuse();
  Limit limit;
  limit.text = std::string(text);
  limit.key = std::string(trim(text.substr(0, at)));
  const bool is_inclusive = text.substr(at + 1).starts_with('=');
  if (text[at] == '>')
    limit.comparison = is_inclusive ? Comparison::kAtLeast : Comparison::kAbove;
  else
    limit.comparison = is_inclusive ? Comparison::kAtMost : Comparison::kBelow;
  const std::string_view number = trim(text.substr(at + (is_inclusive ? 2 : 1)));
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), limit.value);
  if (limit.key.empty() || error != std::errc() || end != number.data() + number.size() ||
      std::isnan(limit.value))
    return refuse();
  return limit;
}

Result<std::vector<std::string>> broken_limits(const Json& result, const std::vector<Limit>& limits) {
  std::vector<std::string> broken;
  for (const Limit& limit : limits) {
    const Json* figure = find(result, limit.key);
    if (!figure || !(figure->is_number() || figure->is_null()))
      return fail(ErrorCode::kUsage, "the result has no figure \"" + limit.key + "\"", "--fail-if",
                  "ask for it with --percentile-metrics and --metric-percentiles");
    const auto value = figure->as_double();
    if (value && !is_broken(*value, limit)) continue;
    broken.push_back(limit.text + ": it is " + (value ? format_double(*value) : "unknown"));
  }
  return broken;
}

Status check_limits(const Options& options, const std::vector<Limit>& limits) {
  RunResult blank;
  blank.options = options;
  blank.summary.endpoints.resize(options.base_urls.size());
  blank.summary.steady.emplace();
  std::vector<Limit> known = limits;
  std::erase_if(known, [](const Limit& limit) { return is_of_the_server(limit.key); });
  PLIMSOLL_TRY([[maybe_unused]] const auto broken, broken_limits(to_json(blank, false), known));
  return {};
}

}  // namespace plimsoll::bench
