// SPDX-License-Identifier: Apache-2.0
#include "verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "verify/causes.h"
#include "verify/log_settings.h"
#include "verify/predicted.h"

namespace plimsoll::verify {
namespace {

Delta bytes_delta(const char* part, std::int64_t plan, const Printed& log, std::int64_t error_bar) {
  Delta delta;
  delta.part = part;
  delta.plan = static_cast<double>(plan);
  delta.log = static_cast<double>(log.value);
  delta.difference_bytes = log.value - plan;
  delta.error_bar_bytes = error_bar + log.half_step;
  delta.within_error_bar = std::abs(log.value - plan) <= delta.error_bar_bytes;
  return delta;
}

/// Tokens of another size tell nothing of the bytes between them.
bool has_same_token(const Predicted& plan, const EngineStart& run) {
  return plan.kv_bytes_per_token &&
         (!run.kv_bytes_per_token || run.kv_bytes_per_token->value == *plan.kv_bytes_per_token);
}

/// The plan's error bar for what is counted in blocks: an uncertain size may fall into the next one.
std::int64_t pool_bar(const Predicted& plan) {
  return plan.error_bar > 0 ? plan.error_bar + plan.bytes_per_block.value_or(0) : 0;
}

Delta tokens_delta(const Predicted& plan, const EngineStart& run) {
  Delta delta;
  delta.part = "kv_tokens";
  delta.plan = static_cast<double>(*plan.kv_tokens);
  delta.log = static_cast<double>(run.kv_tokens->value);
  delta.within_error_bar = run.kv_tokens->value == *plan.kv_tokens;
  if (!has_same_token(plan, run)) return delta;
  delta.error_bar_bytes = pool_bar(plan);
  delta.difference_bytes =
      bounded_product(delta.log - delta.plan, static_cast<double>(*plan.kv_bytes_per_token));
  delta.within_error_bar |= std::abs(*delta.difference_bytes) <= delta.error_bar_bytes;
  return delta;
}

Delta concurrency_delta(const Predicted& plan, const EngineStart& run) {
  Delta delta;
  delta.part = "max_concurrency";
  delta.is_exact = false;
  delta.plan = *plan.max_concurrency;
  delta.log = run.max_concurrency->value;
  const bool is_same_length =
      !run.max_model_len || !plan.max_model_len || run.max_model_len->value == *plan.max_model_len;
  if (!is_same_length) return delta;  // of requests of other lengths: no bytes can be told
  const auto request = static_cast<double>(plan.kv_bytes_per_request.value_or(0));
  const double bar = request > 0 ? static_cast<double>(pool_bar(plan)) / request : 0.0;
  // A hair more than half a step: the printed number is a decimal, the planned one a binary fraction.
  const double allowed = run.max_concurrency->half_step * (1 + 1e-9) + bar + 1e-9 * delta.plan;
  delta.within_error_bar = std::abs(delta.log - delta.plan) <= allowed;
  if (!has_same_token(plan, run) || request <= 0) return delta;
  delta.difference_bytes = bounded_product(delta.log - delta.plan, request);
  delta.error_bar_bytes = bounded_product(allowed, request);
  return delta;
}

std::vector<Delta> deltas_of(const Predicted& plan, const EngineStart& run) {
  std::vector<Delta> deltas;
  if (plan.weights && run.weights_bytes)
    deltas.push_back(bytes_delta("weights", *plan.weights, *run.weights_bytes, plan.weights_bar));
  if (plan.kv_cache && run.kv_cache_bytes)
    deltas.push_back(bytes_delta("kv_cache", *plan.kv_cache, *run.kv_cache_bytes, plan.error_bar));
  for (const auto& [part, planned, logged] :
       {std::tuple<const char*, const std::optional<std::int64_t>&, const std::optional<Printed>&>{
            "activation", plan.activation, run.activation_bytes},
        {"non_torch", plan.non_torch, run.non_torch_bytes},
        {"cuda_graph", plan.graphs, run.cuda_graph_estimate_bytes}})
    if (planned && logged) deltas.push_back(bytes_delta(part, *planned, *logged, plan.runtime_bar));
  if (plan.kv_tokens && run.kv_tokens) deltas.push_back(tokens_delta(plan, run));
  if (plan.max_concurrency && run.max_concurrency) deltas.push_back(concurrency_delta(plan, run));
  return deltas;
}

std::optional<std::string> disagreement_of(const Predicted& plan, const EngineStart& run) {
  if (plan.fits && run.failed) return "the plan fits, and the engine refused to start";
  if (!plan.fits && !run.failed && run.kv_tokens)
    return fmt::format("the plan does not fit, and the engine started with {} tokens",
                       with_commas(run.kv_tokens->value));
  return std::nullopt;
}

OwnPlan own_plan(const EngineStart& run) {
  OwnPlan own;
  const auto document = plan_from_log(run);
  if (!document) {
    own.missing = document.error().message;
    return own;
  }
  const auto row = first_row(*document);
  if (!row) return own;
  own.plan = **row;
  Predicted predicted = predicted_of(*document, **row);
  // Where the cache's size was taken from the log, tokens follow within its last digit.
  if (!run.gpu_total_bytes && run.kv_cache_bytes) predicted.error_bar += run.kv_cache_bytes->half_step;
  own.deltas = deltas_of(predicted, run);
  own.causes = find_causes(predicted, run, own.deltas);
  return own;
}

std::optional<double> real(const std::optional<std::int64_t>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::optional<double> real(const std::optional<PrintedReal>& value) {
  return value ? std::optional(value->value) : std::nullopt;
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
      {"concurrent_requests", "requests", plan.max_concurrency, real(run.max_concurrency), measured_requests},
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

std::optional<bool> Report::answer() const {
  return plan && is_recognised() ? std::optional(agrees()) : std::nullopt;
}

Result<Report> compare(Log log, const Json* plan, const Json* bench) {
  Report report;
  report.log = std::move(log);
  Predicted predicted;
  if (plan) {
    PLIMSOLL_TRY(const Json* row, first_row(*plan));
    report.plan = *row;
    predicted = predicted_of(*plan, *row);
  }
  if (bench && !bench->is_object())
    return fail(ErrorCode::kMalformed, "the measurements are no JSON object", "--bench",
                "write them with `plimsoll bench ... --save-result`");
  if (!report.is_recognised()) return report;
  const EngineStart& run = report.log.runs.back();
  if (plan) {
    report.deltas = deltas_of(predicted, run);
    report.disagreement = disagreement_of(predicted, run);
    report.causes = find_causes(predicted, run, report.deltas);
  } else {
    report.causes = find_causes({}, run, {});
    report.from_log = own_plan(run);
  }
  if (bench) report.comparisons = comparisons_of(predicted, run, *bench);
  return report;
}

}  // namespace plimsoll::verify
