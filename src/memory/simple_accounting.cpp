// SPDX-License-Identifier: Apache-2.0
#include "memory/simple_accounting.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::memory {
namespace {

Status check(const SimpleInput& input) {
  if (input.num_gpus < 1 || input.gpu_memory.value < 1)
    return fail(ErrorCode::kUsage, "a plan needs at least one GPU with memory", "--gpu",
                "for example --gpu 24GB:1");
  if (!(input.memory_utilization > 0 && input.memory_utilization <= 1))
    return fail(ErrorCode::kUsage, "the share of memory must be above 0 and at most 1",
                "--gpu-memory-utilization", "for example 0.92");
  // Before the length: a model without attention has none.
  if (input.kv_bytes_per_token.value < 1)
    return fail(ErrorCode::kUnsupported,
                "no layer of this model keeps keys and values, so no token costs anything", "config.json",
                "the simple accounting is for attention");
  if (input.max_model_len < 1)
    return fail(ErrorCode::kUsage, "the length of a request must be at least 1 token", "--max-model-len",
                "for example 8192");
  return {};
}

}  // namespace

Result<SimplePlan> plan_simple(const SimpleInput& input) {
  PLIMSOLL_TRY_VOID(check(input));
  const auto memory = checked_product(input.num_gpus, input.gpu_memory.value);
  const auto reserve = checked_product(input.num_gpus, input.reserve_per_gpu.value);
  const auto required = checked_product(input.max_model_len, input.kv_bytes_per_token.value);
  if (!memory || !reserve || !required)
    return fail(ErrorCode::kUsage, "the sizes asked for do not fit 63 bits", "--gpu", "ask for less");

  SimplePlan plan;
  plan.budget = Bytes(std::llround(static_cast<double>(*memory) * input.memory_utilization));
  plan.reserve = Bytes(*reserve);
  plan.kv_cache = plan.budget - input.weights - plan.reserve;
  plan.required_kv_cache = Bytes(*required);
  const auto usable = static_cast<double>(std::max<std::int64_t>(0, plan.kv_cache.value));
  const double tokens = usable / static_cast<double>(input.kv_bytes_per_token.value);
  plan.kv_tokens = Tokens(std::llround(tokens));
  plan.longest_model_len = Tokens(std::max<std::int64_t>(0, plan.kv_cache / input.kv_bytes_per_token));
  plan.max_concurrency = tokens / static_cast<double>(input.max_model_len);
  plan.fits = plan.kv_cache >= plan.required_kv_cache;
  return plan;
}

}  // namespace plimsoll::memory
