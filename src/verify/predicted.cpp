// SPDX-License-Identifier: Apache-2.0
#include "verify/predicted.h"

#include <algorithm>

namespace plimsoll::verify {

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

namespace {

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

/// The parts that a run takes; where the cache's size was given none is planned.
void add_bill(const Json& plan, const Json& row, Predicted& predicted) {
  if (!predicted.budget) return;
  std::int64_t forward = 0;
  for (std::size_t i = 0; i < row["memory"].size(); ++i) {
    const Json& part = row["memory"].items()[i];
    const auto bytes = count_at(part, "bytes");
    const std::string* name = part["part"].as_string();
    if (!bytes || !name) continue;
    if (*name == "activation") forward = *bytes;
    if (*name == "sampler") predicted.sampler = *bytes;
    if (*name == "cuda_graph") predicted.graphs = *bytes;
    if (*name != "non_torch") continue;
    predicted.non_torch = *bytes;
    const Json& basis = plan["basis"]["/rows/0/memory/" + std::to_string(i) + "/bytes"];
    if (const auto high = basis["high"].as_double(); high && *high < 2e18)
      predicted.runtime_bar = static_cast<std::int64_t>(*high) - *bytes;
  }
  if (predicted.sampler) predicted.activation = std::max(forward, *predicted.sampler);
}

}  // namespace

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
  if (const std::string* version = plan["engine"]["version"].as_string()) predicted.version = *version;
  predicted.gpu_memory = count_at(row["gpu"], "memory_bytes");
  predicted.budget = count_at(row, "budget_bytes_per_gpu");
  add_bill(plan, row, predicted);
  double peak = 0;
  for (const Json& part : row["memory"].items())
    if (part["part"] != Json("margin")) peak += part["bytes"].as_double().value_or(0);
  if (peak > 0 && peak < 2e18) predicted.peak = static_cast<std::int64_t>(peak);
  return predicted;
}

}  // namespace plimsoll::verify
