// SPDX-License-Identifier: Apache-2.0
// A report as the document plimsoll.verify/1, and as text.
#include <fmt/format.h>

#include <iterator>

#include "base/printable.h"
#include "verify/log_settings.h"
#include "verify/verify.h"

namespace plimsoll::verify {
namespace {

void put(Json& object, Json& printed, const char* name, const std::optional<Printed>& value) {
  object.set(name, value ? Json(value->value) : Json());
  if (value) printed.set(name, value->text);
}

void put(Json& object, Json& printed, const char* name, const std::optional<PrintedReal>& value) {
  object.set(name, value ? Json(value->value) : Json());
  if (value) printed.set(name, value->text);
}

Json num_ranks(const EngineStart& run) {
  if (!run.tensor_parallel && !run.settings.contains("tensor_parallel_size"))
    return run.ranks.empty() ? Json() : Json(run.ranks.size());
  const auto tensor = stated_ranks(run, "tensor_parallel_size", run.tensor_parallel);
  const auto stages = stated_ranks(run, "pipeline_parallel_size", run.pipeline_parallel);
  return tensor && stages ? Json(std::int64_t{*tensor} * *stages) : Json();
}

Json to_json(const std::map<std::string, RankFigures>& ranks) {
  const auto bytes = [](const std::optional<Printed>& printed) {
    return printed ? Json(printed->value) : Json();
  };
  Json list = Json::array();
  for (const auto& [tag, figures] : ranks)
    list.push_back(Json::object({{"rank", tag},
                                 {"weights_bytes", bytes(figures.weights_bytes)},
                                 {"kv_cache_bytes", bytes(figures.kv_cache_bytes)},
                                 {"activation_bytes", bytes(figures.activation_bytes)}}));
  return list;
}

/// Every field of the contract; what this reader does not look for is null, like what the log does not say.
Json to_json(const EngineStart& run) {
  Json object =
      Json::object({{"engine", run.engine}, {"version", run.version}, {"num_ranks", num_ranks(run)}});
  Json printed = Json::object();
  put(object, printed, "weights_bytes", run.weights_bytes);
  put(object, printed, "kv_cache_bytes", run.kv_cache_bytes);
  put(object, printed, "kv_tokens", run.kv_tokens);
  put(object, printed, "kv_bytes_per_token", run.kv_bytes_per_token);
  put(object, printed, "num_blocks", run.num_blocks);
  put(object, printed, "block_size", run.block_size);
  put(object, printed, "max_concurrency", run.max_concurrency);
  put(object, printed, "max_model_len", run.max_model_len);
  put(object, printed, "cuda_graph_bytes", run.cuda_graph_bytes);
  put(object, printed, "cuda_graph_estimate_bytes", run.cuda_graph_estimate_bytes);
  put(object, printed, "activation_bytes", run.activation_bytes);
  put(object, printed, "non_torch_bytes", run.non_torch_bytes);
  put(object, printed, "gpu_total_bytes", run.gpu_total_bytes);
  put(object, printed, "gpu_free_bytes", run.gpu_free_bytes);
  put(object, printed, "budget_bytes", run.budget_bytes);
  put(object, printed, "gpu_memory_utilization", run.gpu_memory_utilization);
  put(object, printed, "max_num_batched_tokens", run.max_num_batched_tokens);
  object.set("failed", run.failed);
  object.set("error", run.failed ? Json(run.error) : Json());
  put(object, printed, "required_kv_cache_bytes", run.required_kv_cache_bytes);
  put(object, printed, "estimated_max_model_len", run.estimated_max_model_len);
  put(object, printed, "suggested_kv_cache_memory_bytes", run.suggested_kv_cache_memory_bytes);
  object.set("ready", run.is_ready);
  object.set("ranks", to_json(run.ranks));
  object.set("as_printed", std::move(printed));
  Json unread = Json::array();
  for (const std::string& line : run.unread_lines) unread.push_back(line);
  object.set("unread_lines", std::move(unread));
  return object;
}

Json number(double value, bool is_exact) {
  return is_exact ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json to_json(const std::vector<Delta>& deltas) {
  Json list = Json::array();
  for (const Delta& delta : deltas)
    list.push_back(Json::object({{"part", delta.part},
                                 {"plan", number(delta.plan, delta.is_exact)},
                                 {"log", number(delta.log, delta.is_exact)},
                                 {"difference_bytes", delta.difference_bytes},
                                 {"error_bar_bytes", delta.error_bar_bytes},
                                 {"within_error_bar", delta.within_error_bar}}));
  return list;
}

Json to_json(const std::vector<Cause>& causes) {
  Json list = Json::array();
  for (const Cause& cause : causes)
    list.push_back(Json::object({{"id", cause.id},
                                 {"likelihood", cause.likelihood},
                                 {"explains_bytes", cause.explains_bytes},
                                 {"evidence", cause.evidence},
                                 {"fix", cause.fix}}));
  return list;
}

Json to_json(const std::optional<OwnPlan>& own) {
  if (!own) return {};
  return Json::object({{"plan", own->plan ? *own->plan : Json()},
                       {"missing", own->missing.empty() ? Json() : Json(own->missing)},
                       {"deltas", to_json(own->deltas)},
                       {"causes", to_json(own->causes)}});
}

std::string shown(const std::optional<double>& value) {
  if (!value) return "-";
  const auto whole = static_cast<std::int64_t>(*value);
  return static_cast<double>(whole) == *value ? with_commas(whole) : fmt::format("{:.2f}", *value);
}

void append_delta(const Delta& delta, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "  {:<16} plan {:>18}  log {:>18}  {}", delta.part, shown(delta.plan), shown(delta.log),
                 delta.within_error_bar ? "agrees" : "DIFFERS");
  if (delta.difference_bytes) {
    const std::int64_t difference = *delta.difference_bytes;
    fmt::format_to(to, ": {}{} bytes, error bar {} bytes", difference > 0 ? "+" : "", with_commas(difference),
                   with_commas(delta.error_bar_bytes));
  }
  fmt::format_to(to, "\n");
}

void append_causes(const std::vector<Cause>& causes, std::string& out) {
  for (const Cause& cause : causes)
    fmt::format_to(std::back_inserter(out), "  cause {} ({:.0f} %): {}; {}\n", cause.id,
                   cause.likelihood * 100, cause.evidence, cause.fix);
}

}  // namespace

Json to_json(const Report& report) {
  Json runs = Json::array();
  for (const EngineStart& run : report.log.runs) runs.push_back(to_json(run));
  Json comparisons = Json::array();
  for (const Comparison& row : report.comparisons)
    comparisons.push_back(Json::object({{"quantity", row.quantity},
                                        {"unit", row.unit},
                                        {"predicted", row.predicted},
                                        {"logged", row.logged},
                                        {"measured", row.measured}}));
  return Json::object(
      {{"schema", "plimsoll.verify/1"},
       {"agrees", report.answer()},
       {"log", report.log.runs.empty() ? to_json(EngineStart{}) : to_json(report.log.runs.back())},
       {"runs", std::move(runs)},
       {"num_runs", report.log.num_runs},
       {"plan", report.plan ? *report.plan : Json()},
       {"disagreement", report.disagreement},
       {"deltas", to_json(report.deltas)},
       {"causes", to_json(report.causes)},
       {"from_log", to_json(report.from_log)},
       {"comparison", std::move(comparisons)}});
}

std::string to_text(const Report& report) {
  std::string out;
  auto to = std::back_inserter(out);
  if (!report.is_recognised())
    return fmt::format("no line of a known engine in {} lines\n", with_commas(report.log.num_lines));
  const EngineStart& run = report.log.runs.back();
  fmt::format_to(to, "{}{}{}", *run.engine, run.version ? " " : "", run.version.value_or(""));
  if (report.log.num_runs > 1) fmt::format_to(to, ", the last of {} starts", report.log.num_runs);
  fmt::format_to(to, "\n");
  const auto line = [&](const char* name, const std::optional<Printed>& value, const char* unit) {
    if (value)
      fmt::format_to(to, "  {:<20} {:>18} {}  (\"{}\")\n", name, with_commas(value->value), unit,
                     value->text);
  };
  line("weights", run.weights_bytes, "bytes");
  line("KV cache", run.kv_cache_bytes, "bytes");
  line("activations", run.activation_bytes, "bytes");
  line("outside of torch", run.non_torch_bytes, "bytes");
  line("CUDA graphs", run.cuda_graph_bytes, "bytes");
  line("budget", run.budget_bytes, "bytes");
  line("KV tokens", run.kv_tokens, "tokens");
  line("longest request", run.max_model_len, "tokens");
  if (run.max_concurrency)
    fmt::format_to(to, "  {:<20} {:>18.2f}\n", "requests at once", run.max_concurrency->value);
  if (run.failed) fmt::format_to(to, "  the start failed: {}\n", run.error);
  line("longest that fits", run.estimated_max_model_len, "tokens");
  if (run.ranks.size() > 1)
    for (const auto& [tag, figures] : run.ranks)
      if (figures.kv_cache_bytes)
        fmt::format_to(to, "  {:<20} {:>18} bytes for its cache\n", tag,
                       with_commas(figures.kv_cache_bytes->value));
  for (const std::string& unread : run.unread_lines) fmt::format_to(to, "  not understood: {}\n", unread);
  for (const Delta& delta : report.deltas) append_delta(delta, out);
  if (report.disagreement) fmt::format_to(to, "  {}\n", *report.disagreement);
  append_causes(report.causes, out);
  if (const auto& own = report.from_log) {
    if (own->plan) fmt::format_to(to, "planned from the log's own settings:\n");
    if (!own->plan) fmt::format_to(to, "not planned from the log's own settings: {}\n", own->missing);
    for (const Delta& delta : own->deltas) append_delta(delta, out);
    append_causes(own->causes, out);
  }
  for (const Comparison& row : report.comparisons)
    fmt::format_to(to, "  {:<20} predicted {:>18}  logged {:>18}  measured {:>18} {}\n", row.quantity,
                   shown(row.predicted), shown(row.logged), shown(row.measured), row.unit);
  if (const auto answer = report.answer())
    fmt::format_to(to, "plan and log {}\n", *answer ? "agree" : "disagree");
  return printable_page(out);
}

}  // namespace plimsoll::verify
