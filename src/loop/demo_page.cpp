// SPDX-License-Identifier: Apache-2.0
// What the demo shows: its document and its page.
#include <fmt/format.h>

#include "base/units.h"
#include "loop/demo.h"

namespace plimsoll::loop {
namespace {

std::string number(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : std::string("-");
}

std::string count(const std::optional<std::int64_t>& value) {
  return value ? with_commas(*value) : std::string("unknown");
}

std::string pair_line(const Comparison& row) {
  std::string line = fmt::format("  {:<20} predicted {:>13}   measured {:>13}", row.label,
                                 count(row.predicted), count(row.measured));
  if (!row.measured || !row.predicted || *row.predicted == 0) return line;
  if (*row.measured == *row.predicted) return line + "   exact";
  const auto predicted = static_cast<double>(*row.predicted);
  return line +
         fmt::format("   {:+.1f} %", 100.0 * (static_cast<double>(*row.measured) - predicted) / predicted);
}

Json level_json(const Level& level) {
  return Json::object({{"max_concurrency", level.max_concurrency},
                       {"completed", level.completed},
                       {"failed", level.failed},
                       {"mean_ttft_ms", level.mean_ttft_ms},
                       {"mean_tpot_ms", level.mean_tpot_ms},
                       {"output_throughput", level.output_throughput},
                       {"total_token_throughput", level.total_token_throughput}});
}

}  // namespace

Json to_json(const DemoResult& result) {
  Json pairs = Json::array();
  Json basis = Json::object();
  for (const auto& row : result.comparisons) {
    const std::string pointer = fmt::format("/predicted_measured/{}", pairs.size());
    basis.set(pointer + "/measured", Json::object({{"kind", "measured"}, {"source", row.how}}));
    if (row.quantity == "peak_memory_bytes")
      basis.set(
          pointer + "/predicted",
          Json::object({{"kind", "assumed"},
                        {"source", "weights, pool and buffers are exact; the process base is assumed"}}));
    pairs.push_back(Json::object({{"quantity", row.quantity},
                                  {"unit", row.unit},
                                  {"predicted", row.predicted},
                                  {"measured", row.measured}}));
  }
  Json sweep = Json::array();
  for (const auto& level : result.sweep) sweep.push_back(level_json(level));
  return Json::object(
      {{"schema", "plimsoll.demo/1"},
       {"model", Json::object({{"name", result.model_name},
                               {"architecture", result.architecture},
                               {"sha256", result.sha256.empty() ? Json() : Json(result.sha256)},
                               {"parameters", result.parameters}})},
       {"machine", result.machine},
       {"predicted_measured", std::move(pairs)},
       {"sweep", std::move(sweep)},
       {"answer", Json::object({{"prompt", result.prompt}, {"text", result.answer}})},
       {"log_agrees", result.log_agrees},
       {"wall_s", result.wall_s},
       {"basis", std::move(basis)}});
}

std::string to_text(const DemoResult& result) {
  std::string page = fmt::format("plimsoll demo: {} ({}, {} parameters)\non {}\n\n", result.model_name,
                                 result.architecture, count(result.parameters), result.machine);
  page += "Inspect   " + result.inspect_summary + "\n\n";
  page += "Plan against the running server\n";
  for (const auto& row : result.comparisons) page += pair_line(row) + "\n";
  page += "\nBench (closed loop over HTTP)\n";
  page += fmt::format("  {:>11} {:>9} {:>6} {:>10} {:>10} {:>13} {:>13}\n", "concurrency", "completed",
                      "failed", "TTFT ms", "TPOT ms", "output tok/s", "total tok/s");
  for (const auto& level : result.sweep)
    page += fmt::format("  {:>11} {:>9} {:>6} {:>10} {:>10} {:>13} {:>13}\n", level.max_concurrency,
                        level.completed, level.failed, number(level.mean_ttft_ms, 1),
                        number(level.mean_tpot_ms, 2), number(level.output_throughput, 1),
                        number(level.total_token_throughput, 1));
  page += fmt::format("\nVerify    the engine's log {} the plan\n",
                      result.log_agrees ? "agrees with" : "DISAGREES with");
  page += fmt::format("\nQuestion  {}\nAnswer    {}\n\n", result.prompt, result.answer);
  page += fmt::format("{:.1f} s in all\n", result.wall_s);
  return page;
}

}  // namespace plimsoll::loop
