// SPDX-License-Identifier: Apache-2.0
#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace plimsoll::verify {
namespace {

/// What of a plan's row is compared.
struct Predicted {
  bool fits = false;
  std::optional<std::int64_t> weights, kv_cache, kv_tokens, max_model_len, kv_bytes_per_token,
      kv_bytes_per_request, bytes_per_block, block_size, peak;
  std::optional<double> max_concurrency;
  std::int64_t error_bar = 0;
};

Result<const Json*> first_row(const Json& plan) {
  const std::string* schema = plan["schema"].as_string();
  if (!schema || *schema != "plimsoll.plan/1")
    return fail(ErrorCode::kMalformed, "the plan is no document of the kind plimsoll.plan/1",
                "--plan: /schema", "write it with `plimsoll plan ... --format json -o FILE`");
  const Json& rows = plan["rows"];
  if (rows.items().empty() || !rows.items()[0]["fits"].is_bool())
    return fail(ErrorCode::kMalformed, "the plan has no row that says whether it fits", "--plan: /rows/0",
                "write it with `plimsoll plan ... --format json -o FILE`");
  if (!rows.items()[0].contains("weights_bytes_per_gpu"))
    return fail(ErrorCode::kMalformed, "the plan's rows speak of no engine",
                "--plan: /rows/0/weights_bytes_per_gpu", "plan without --accounting simple");
  return &rows.items()[0];
}

/// A whole number of the row that differences may be taken of; absent otherwise.
std::optional<std::int64_t> count_at(const Json& row, std::string_view key) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 61;
  const auto value = row[key].as_integer();
  return value && *value >= 0 && *value <= kLargest ? value : std::nullopt;
}

Predicted predicted_of(const Json& row) {
  Predicted predicted;
  predicted.fits = row["fits"].as_bool().value_or(false);
  predicted.weights = count_at(row, "weights_bytes_per_gpu");
  predicted.kv_cache = count_at(row, "kv_cache_bytes_per_gpu");
  predicted.kv_tokens = count_at(row, "kv_tokens");
  predicted.max_model_len = count_at(row, "max_model_len");
  predicted.kv_bytes_per_token = count_at(row, "kv_bytes_per_token_per_gpu");
  predicted.kv_bytes_per_request = count_at(row, "kv_bytes_per_request_per_gpu");
  predicted.bytes_per_block = count_at(row, "bytes_per_block");
  predicted.block_size = count_at(row, "block_size");
  predicted.max_concurrency = row["max_concurrency"].as_double();
  predicted.error_bar = count_at(row, "error_bar_bytes").value_or(0);
  double peak = 0;
  for (const Json& part : row["memory"].items())
    if (part["part"] != Json("margin")) peak += part["bytes"].as_double().value_or(0);
  if (peak > 0 && peak < 2e18) predicted.peak = static_cast<std::int64_t>(peak);
  return predicted;
}

/// a * b held within what an integer of bytes can say.
std::int64_t bounded_product(double a, double b) {
  constexpr double kLargest = 4e18;
  return static_cast<std::int64_t>(std::clamp(a * b, -kLargest, kLargest));
}

Delta bytes_delta(const char* part, std::int64_t plan, const Printed& log, std::int64_t error_bar) {
  Delta delta;
  delta.part = part;
  delta.plan = static_cast<double>(plan);
  delta.log = static_cast<double>(log.value);
  delta.difference_bytes = log.value - plan;
  delta.within_error_bar = std::abs(log.value - plan) <= error_bar + log.half_step;
  return delta;
}

Delta tokens_delta(const Predicted& plan, const Printed& log) {
  Delta delta;
  delta.part = "kv_tokens";
  delta.plan = static_cast<double>(*plan.kv_tokens);
  delta.log = static_cast<double>(log.value);
  const auto token = static_cast<double>(plan.kv_bytes_per_token.value_or(0));
  const std::int64_t difference = bounded_product(delta.log - delta.plan, token);
  if (plan.kv_bytes_per_token) delta.difference_bytes = difference;
  // An uncertain size may fall into the next block.
  const std::int64_t bar = plan.error_bar > 0 ? plan.error_bar + plan.bytes_per_block.value_or(0) : 0;
  delta.within_error_bar =
      log.value == *plan.kv_tokens || (plan.kv_bytes_per_token && std::abs(difference) <= bar);
  return delta;
}

Delta concurrency_delta(const Predicted& plan, const EngineStart& run) {
  Delta delta;
  delta.part = "max_concurrency";
  delta.is_exact = false;
  delta.plan = *plan.max_concurrency;
  delta.log = *run.max_concurrency;
  const bool is_same_length =
      !run.max_model_len || !plan.max_model_len || run.max_model_len->value == *plan.max_model_len;
  if (!is_same_length) return delta;  // of requests of other lengths: no bytes can be told
  const auto request = static_cast<double>(plan.kv_bytes_per_request.value_or(0));
  delta.difference_bytes = bounded_product(delta.log - delta.plan, request);
  const double bar = plan.error_bar > 0 && request > 0
                         ? static_cast<double>(plan.error_bar + plan.bytes_per_block.value_or(0)) / request
                         : 0.0;
  // A hair more than half a step: the printed number is a decimal, the planned one a binary fraction.
  delta.within_error_bar = std::abs(delta.log - delta.plan) <=
                           run.max_concurrency_half_step * (1 + 1e-9) + bar + 1e-9 * delta.plan;
  return delta;
}

std::vector<Delta> deltas_of(const Predicted& plan, const EngineStart& run) {
  std::vector<Delta> deltas;
  if (plan.weights && run.weights_bytes)
    deltas.push_back(bytes_delta("weights", *plan.weights, *run.weights_bytes, 0));
  if (plan.kv_cache && run.kv_cache_bytes)
    deltas.push_back(bytes_delta("kv_cache", *plan.kv_cache, *run.kv_cache_bytes, plan.error_bar));
  if (plan.kv_tokens && run.kv_tokens) deltas.push_back(tokens_delta(plan, *run.kv_tokens));
  if (plan.max_concurrency && run.max_concurrency) deltas.push_back(concurrency_delta(plan, run));
  return deltas;
}

const Delta* find(const std::vector<Delta>& deltas, std::string_view part) {
  const auto at = std::find_if(deltas.begin(), deltas.end(), [&](const Delta& d) { return d.part == part; });
  return at == deltas.end() ? nullptr : &*at;
}

void add_other_process(const std::vector<Delta>& deltas, std::vector<Cause>& causes) {
  const Delta* cache = find(deltas, "kv_cache");
  if (!cache || cache->within_error_bar || *cache->difference_bytes >= 0) return;
  const Delta* weights = find(deltas, "weights");
  const bool weights_agree = !weights || weights->within_error_bar;
  const std::int64_t missing = -*cache->difference_bytes;
  causes.push_back(
      {"OTHER_PROCESS", weights_agree ? 0.7 : 0.3, missing,
       fmt::format("the KV cache has {} less than planned{}", as_gib(Bytes(missing)),
                   weights_agree ? ", while the weights are as planned" : ""),
       "look what else held memory when the engine started (nvidia-smi, top), stop it and start again, "
       "or plan with what was free"});
}

void add_defaults(const Predicted& plan, const EngineStart& run, const std::vector<Delta>& deltas,
                  std::vector<Cause>& causes) {
  struct Setting {
    const char *name, *flag;
    std::optional<std::int64_t> planned;
    const std::optional<Printed>& logged;
  };
  const Delta* cache = find(deltas, "kv_cache");
  for (const Setting& setting : {
           Setting{"max_model_len", "--max-model-len", plan.max_model_len, run.max_model_len},
           Setting{"block size", "--block-size", plan.block_size, run.block_size},
           Setting{"KV bytes per token", "--kv-cache-dtype or --dtype", plan.kv_bytes_per_token,
                   run.kv_bytes_per_token},
       }) {
    if (!setting.planned || !setting.logged || *setting.planned == setting.logged->value) continue;
    const bool has_difference = cache && !cache->within_error_bar;
    causes.push_back({"VERSION_DEFAULT", 0.8, has_difference ? std::abs(*cache->difference_bytes) : 0,
                      fmt::format("{}: planned {}, the engine used {}", setting.name,
                                  with_commas(*setting.planned), with_commas(setting.logged->value)),
                      fmt::format("give {} to both plan and engine", setting.flag)});
  }
}

void add_rounding(const EngineStart& run, const std::vector<Delta>& deltas, std::vector<Cause>& causes) {
  for (const auto& [part, printed] :
       {std::pair<const char*, const std::optional<Printed>&>{"weights", run.weights_bytes},
        {"kv_cache", run.kv_cache_bytes}}) {
    const Delta* delta = find(deltas, part);
    if (!delta || !printed || *delta->difference_bytes == 0) continue;
    if (std::abs(*delta->difference_bytes) > printed->half_step) continue;
    causes.push_back({"LOG_ROUNDING", 0.95, std::abs(*delta->difference_bytes),
                      fmt::format("{} was printed as {}, which is within {} bytes of the plan", part,
                                  printed->text, with_commas(printed->half_step)),
                      "nothing: the log shows fewer digits than there are"});
  }
}

std::optional<std::string> disagreement_of(const Predicted& plan, const EngineStart& run) {
  if (plan.fits && run.failed) return "the plan fits, and the engine refused to start";
  if (!plan.fits && !run.failed && run.kv_tokens)
    return fmt::format("the plan does not fit, and the engine started with {} tokens",
                       with_commas(run.kv_tokens->value));
  return std::nullopt;
}

std::optional<double> real(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> real(const std::optional<Printed>& value) {
  return value ? std::optional(static_cast<double>(value->value)) : std::nullopt;
}

std::vector<Comparison> comparisons_of(const Predicted& plan, const EngineStart& run, const Json& bench) {
  const Json& ours = bench["plimsoll"];
  std::optional<double> measured_requests = ours["max_concurrent_requests_exact"].as_double();
  if (!measured_requests) measured_requests = bench["max_concurrent_requests"].as_double();
  return {
      {"weights_bytes", "bytes", real(plan.weights), real(run.weights_bytes), {}},
      {"kv_cache_bytes", "bytes", real(plan.kv_cache), real(run.kv_cache_bytes), {}},
      {"kv_tokens", "tokens", real(plan.kv_tokens), real(run.kv_tokens), {}},
      {"live_tokens_peak", "tokens", real(plan.kv_tokens), {}, ours["live_tokens"]["peak"].as_double()},
      {"concurrent_requests", "requests", plan.max_concurrency, run.max_concurrency, measured_requests},
      {"peak_memory_bytes", "bytes", real(plan.peak), {}, ours["memory_used_bytes"]["peak"].as_double()},
  };
}

}  // namespace

bool Report::is_recognised() const {
  return !log.runs.empty() && log.runs.back().engine.has_value();
}

bool Report::agrees() const {
  return is_recognised() && !log.runs.back().failed && !disagreement &&
         std::all_of(deltas.begin(), deltas.end(), [](const Delta& delta) { return delta.within_error_bar; });
}

Result<Report> compare(Log log, const Json* plan, const Json* bench) {
  Report report;
  report.log = std::move(log);
  Predicted predicted;
  if (plan) {
    PLIMSOLL_TRY(const Json* row, first_row(*plan));
    report.plan = *row;
    predicted = predicted_of(*row);
  }
  if (bench && !bench->is_object())
    return fail(ErrorCode::kMalformed, "the measurements are no JSON object", "--bench",
                "write them with `plimsoll bench ... --save-result`");
  if (!report.is_recognised()) return report;
  const EngineStart& run = report.log.runs.back();
  if (plan) {
    report.deltas = deltas_of(predicted, run);
    report.disagreement = disagreement_of(predicted, run);
    add_other_process(report.deltas, report.causes);
    add_defaults(predicted, run, report.deltas, report.causes);
    add_rounding(run, report.deltas, report.causes);
    std::stable_sort(report.causes.begin(), report.causes.end(),
                     [](const Cause& a, const Cause& b) { return a.explains_bytes > b.explains_bytes; });
  }
  if (bench) report.comparisons = comparisons_of(predicted, run, *bench);
  return report;
}

}  // namespace plimsoll::verify
