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
  std::int64_t error_bar = 0;    // of kv_cache
  std::int64_t weights_bar = 0;  // of weights; 0 when they are exact
  std::string limited_by;        // what decided the pool's size; empty when the plan does not say
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

/// Half width of the band that the plan puts around its weights.
std::int64_t weights_bar_of(const Json& plan, std::int64_t weights) {
  const Json& basis = plan["basis"]["/rows/0/weights_bytes_per_gpu"];
  if (!basis.is_object()) return 0;
  const auto low = basis["low"].as_double(), high = basis["high"].as_double();
  const auto middle = static_cast<double>(weights);
  // A formula without a band: it leaves out buffers and scales, so it cannot be held to the byte.
  constexpr double kUsualShare = 0.01;
  const double bar = low && high ? std::max(middle - *low, *high - middle) : middle * kUsualShare;
  constexpr double kLargest = 2e18;
  return static_cast<std::int64_t>(std::clamp(bar, 0.0, kLargest));
}

Predicted predicted_of(const Json& plan, const Json& row) {
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
  if (predicted.weights) predicted.weights_bar = weights_bar_of(plan, *predicted.weights);
  if (const std::string* limit = row["kv_cache_limited_by"].as_string()) predicted.limited_by = *limit;
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
  if (plan.kv_tokens && run.kv_tokens) deltas.push_back(tokens_delta(plan, run));
  if (plan.max_concurrency && run.max_concurrency) deltas.push_back(concurrency_delta(plan, run));
  return deltas;
}

const Delta* find(const std::vector<Delta>& deltas, std::string_view part) {
  const auto at = std::find_if(deltas.begin(), deltas.end(), [&](const Delta& d) { return d.part == part; });
  return at == deltas.end() ? nullptr : &*at;
}

Cause setting_differs(double likelihood, std::int64_t bytes, std::string evidence, const std::string& flag) {
  return {"SETTING_DIFFERS", likelihood, bytes, std::move(evidence),
          fmt::format("give {} to both plan and engine", flag)};
}

/// What the log itself says of its settings, beside the plan's.
void add_settings(const Predicted& plan, const EngineStart& run, const std::vector<Delta>& deltas,
                  std::vector<Cause>& causes) {
  struct Setting {
    const char *name, *flag;
    std::optional<std::int64_t> planned;
    const std::optional<Printed>& logged;
  };
  const Delta* cache = find(deltas, "kv_cache");
  const std::int64_t bytes = cache && !cache->within_error_bar ? std::abs(*cache->difference_bytes) : 0;
  for (const Setting& setting : {
           Setting{"max_model_len", "--max-model-len", plan.max_model_len, run.max_model_len},
           Setting{"block size", "--block-size", plan.block_size, run.block_size},
           Setting{"KV bytes per token", "--kv-cache-dtype or --dtype", plan.kv_bytes_per_token,
                   run.kv_bytes_per_token},
       }) {
    if (!setting.planned || !setting.logged || *setting.planned == setting.logged->value) continue;
    causes.push_back(
        setting_differs(0.8, bytes,
                        fmt::format("{}: planned {}, the engine used {}", setting.name,
                                    with_commas(*setting.planned), with_commas(setting.logged->value)),
                        setting.flag));
  }
}

bool is_whole(double value) {
  return value >= 1 && std::abs(value - std::round(value)) < 1e-6;
}

/// A pool of another size although no memory decided it: another flag did.
void add_pool_setting(const Predicted& plan, const EngineStart& run, const std::vector<Delta>& deltas,
                      std::vector<Cause>& causes) {
  const Delta* cache = find(deltas, "kv_cache");
  if (!cache || cache->within_error_bar || !causes.empty()) return;
  const std::int64_t bytes = std::abs(*cache->difference_bytes);
  if (plan.limited_by == "flag") {
    causes.push_back(setting_differs(0.8, bytes,
                                     fmt::format("the plan's KV cache of {} bytes was set by a flag, and the "
                                                 "engine's has {}",
                                                 with_commas(static_cast<std::int64_t>(cache->plan)),
                                                 with_commas(static_cast<std::int64_t>(cache->log))),
                                     "--num-gpu-blocks-override or --kv-cache-memory-bytes"));
    return;
  }
  if (plan.limited_by != "max_num_seqs" || !plan.kv_bytes_per_request.value_or(0)) return;
  const double requests = cache->log / static_cast<double>(*plan.kv_bytes_per_request);
  if (!run.kv_cache_bytes || run.kv_cache_bytes->half_step > 0 || !is_whole(requests)) return;
  causes.push_back(
      setting_differs(0.7, bytes,
                      fmt::format("max_num_seqs: the plan's KV cache is that of {:.0f} sequences, the "
                                  "engine's that of {:.0f}",
                                  plan.max_concurrency.value_or(0), requests),
                      "--max-num-seqs"));
}

/// Less room than planned, with the same settings as far as the log tells.
void add_other_process(const std::vector<Delta>& deltas, std::vector<Cause>& causes) {
  const Delta* cache = find(deltas, "kv_cache");
  if (!cache || cache->within_error_bar || *cache->difference_bytes >= 0 || !causes.empty()) return;
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
    add_settings(predicted, run, report.deltas, report.causes);
    add_pool_setting(predicted, run, report.deltas, report.causes);
    add_other_process(report.deltas, report.causes);
    add_rounding(run, report.deltas, report.causes);
    std::stable_sort(report.causes.begin(), report.causes.end(),
                     [](const Cause& a, const Cause& b) { return a.likelihood > b.likelihood; });
  }
  if (bench) report.comparisons = comparisons_of(predicted, run, *bench);
  return report;
}

}  // namespace plimsoll::verify
