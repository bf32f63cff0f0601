// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "base/printable.h"
#include "bench/top.h"

namespace plimsoll::bench {
namespace {

constexpr std::size_t kMaxNameWidth = 40;

std::string figure(std::optional<double> value, int decimals, double factor = 1) {
  return value ? fmt::format("{:.{}f}", *value * factor, decimals) : "-";
}
std::string milliseconds(const std::optional<Quantile>& value) {
  return value ? fmt::format("~{:.1f}", value->value * 1e3) : "-";
}
std::string name(const std::string& text) {
  std::string shown = printable(text);
  if (shown.size() > kMaxNameWidth) {
    std::size_t end = kMaxNameWidth;
    while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xc0) == 0x80) --end;  // no half character
    shown.resize(end);
  }
  return shown.empty() ? "-" : shown;
}

using Cells = std::vector<std::string>;

Cells head() {
  return {"ENDPOINT", "ENGINE",   "MODEL",   "RUN",     "WAIT",    "KV%",     "PROMPT/s", "GEN/s",
          "TTFT50ms", "TTFT99ms", "ITL50ms", "ITL99ms", "PREFIX%", "PREEMPT", "RSS GiB"};
}

Cells cells(const TopRow& row) {
  const ServerState& s = row.state;
  return {name(row.url),
          std::string(to_string(s.engine)),
          name(row.model.substr(row.model.find_last_of('/') + 1)),
          figure(s.of(ServerFigure::kRunning), 0),
          figure(s.of(ServerFigure::kWaiting), 0),
          figure(s.of(ServerFigure::kKvUsage), 1, 100),
          figure(row.prompt_rate, 1),
          figure(row.generated_rate, 1),
          milliseconds(row.ttft_p50),
          milliseconds(row.ttft_p99),
          milliseconds(row.itl_p50),
          milliseconds(row.itl_p99),
          figure(row.prefix_hit_ratio, 1, 100),
          figure(row.preemptions, 0),
          figure(row.resident_bytes, 2, 1.0 / (1 << 30))};
}

constexpr std::size_t kNumNames = 3;  // columns of words, which stand left

void append_line(std::string& out, const Cells& line, const std::vector<std::size_t>& widths) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto width = widths[i];
    out += i < kNumNames ? fmt::format("{:<{}}", line[i], width) : fmt::format("{:>{}}", line[i], width);
    if (i + 1 < line.size()) out += "  ";
  }
  out += '\n';
}

Json maybe_figure(std::optional<double> value) {
  return value ? figure_json(*value) : Json();
}

/// One estimate: its member, and in the map of bases what it was read from.
void add_estimate(Json& object, Json& basis, const std::string& place, std::string_view key,
                  const std::optional<Quantile>& value) {
  object.set(key, value ? Json(value->value * 1e3) : Json());
  if (!value) return;
  basis.set(place + std::string(key),
            Json::object({{"kind", "measured"},
                          {"low", value->low * 1e3},
                          {"high", value->high * 1e3},
                          {"source", "histogram of /metrics, linear inside the bucket"}}));
}

}  // namespace

std::string to_text(const std::vector<TopRow>& rows) {
  std::vector<Cells> table = {head()};
  for (const TopRow& row : rows) table.push_back(cells(row));
  std::vector<std::size_t> widths(table.front().size());
  for (std::size_t r = 0; r < table.size(); ++r) {
    // What has a problem shows it instead of its figures: only its name asks for room.
    const bool is_short = r > 0 && !rows[r - 1].problem.empty();
    for (std::size_t i = 0; i < (is_short ? 1 : widths.size()); ++i)
      widths[i] = std::max(widths[i], table[r][i].size());
  }
  std::string out;
  append_line(out, table.front(), widths);
  for (std::size_t r = 1; r < table.size(); ++r) {
    const TopRow& row = rows[r - 1];
    if (row.problem.empty())
      append_line(out, table[r], widths);
    else
      out += fmt::format("{:<{}}  {}\n", table[r][0], widths[0], printable(row.problem));
  }
  return out;
}

Json to_json(const std::vector<TopRow>& rows) {
  Json endpoints = Json::array();
  Json basis = Json::object();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TopRow& row = rows[i];
    Json one = Json::object({{"url", row.url},
                             {"reached", row.problem != "unreachable"},
                             {"problem", row.problem.empty() ? Json() : Json(row.problem)},
                             {"engine", to_string(row.state.engine)},
                             {"model", row.model.empty() ? Json() : Json(row.model)}});
    for (const ServerFigureRow& known : server_figure_table())
      one.set(known.name, maybe_figure(row.state.of(known.figure)));
    one.set("interval_s", row.interval_s);
    one.set("prompt_tokens_per_s", row.prompt_rate);
    one.set("generated_tokens_per_s", row.generated_rate);
    one.set("prefix_hit_ratio", row.prefix_hit_ratio);
    one.set("preemptions_in_interval", maybe_figure(row.preemptions));
    const std::string place = "/endpoints/" + std::to_string(i) + "/";
    add_estimate(one, basis, place, "ttft_p50_ms", row.ttft_p50);
    add_estimate(one, basis, place, "ttft_p99_ms", row.ttft_p99);
    add_estimate(one, basis, place, "itl_p50_ms", row.itl_p50);
    add_estimate(one, basis, place, "itl_p99_ms", row.itl_p99);
    one.set("resident_memory_bytes", maybe_figure(row.resident_bytes));
    endpoints.push_back(std::move(one));
  }
  return Json::object(
      {{"schema", "plimsoll.top/1"}, {"endpoints", std::move(endpoints)}, {"basis", std::move(basis)}});
}

}  // namespace plimsoll::bench
