// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/division.h"
#include "memory/kv_cache.h"
#include "schedule/cache_group.h"

namespace plimsoll::memory {
namespace {

/// Everything the division starts from, checked once.
struct Division {
  const model::ModelSpec& spec;
  const EmbeddedOptions& options;
  EngineRules rules;
  Bytes weights;
  std::optional<Bytes> available;
  std::optional<Bytes> budget;  // absent when nothing is known of the machine
  EmbeddedCache cache;
  std::int64_t length = 0;  // the longest request asked for

  bool keeps_nothing() const { return cache.groups.empty(); }
  bool pool_is_given() const { return !keeps_nothing() && (options.num_blocks || options.kv_cache_bytes); }
  std::int64_t blocks_for(std::int64_t tokens) const {
    return cache.blocks_for(tokens, options.max_num_batched_tokens);
  }

  Result<Workspace> workspace(std::int64_t tokens) const {
    EmbeddedOptions with_length = options;
    with_length.max_model_len = tokens;
    return embedded_workspace(spec, with_length);
  }
  /// What weights, buffers and process leave of the budget.
  Bytes left_for_pool(const Workspace& space) const {
    return budget.value_or(Bytes(0)) - weights - space.total() - rules.process_base;
  }
  bool has_room_for(const Workspace& space) const { return !budget || left_for_pool(space).value >= 0; }
};

Status check(const EmbeddedOptions& options) {
  if (options.block_size < 1 || options.block_size > kMaxBlockSize)
    return fail(ErrorCode::kUsage, fmt::format("a block of {} tokens cannot be laid out", options.block_size),
                "--block-size", fmt::format("choose 1 to {}; 16 is usual", kMaxBlockSize));
  if (options.max_num_seqs < 1 || options.max_num_seqs > kMaxNumSeqs)
    return fail(ErrorCode::kUsage, fmt::format("{} sequences cannot run at once", options.max_num_seqs),
                "--max-num-seqs", fmt::format("choose 1 to {}", kMaxNumSeqs));
  if (options.max_num_batched_tokens < 1 || options.max_num_batched_tokens > kMaxNumBatchedTokens)
    return fail(ErrorCode::kUsage,
                fmt::format("a step of {} tokens cannot be computed", options.max_num_batched_tokens),
                "--max-num-batched-tokens", fmt::format("choose 1 to {}", kMaxNumBatchedTokens));
  if (options.num_blocks && *options.num_blocks < 1)
    return fail(ErrorCode::kUsage, "the pool needs at least one block", "--num-gpu-blocks-override", "");
  if (options.kv_cache_bytes && options.kv_cache_bytes->value < 1)
    return fail(ErrorCode::kUsage, "the KV cache needs at least one byte", "--kv-cache-memory-bytes", "");
  if (options.memory_utilization && !(*options.memory_utilization > 0 && *options.memory_utilization <= 1))
    return fail(ErrorCode::kUsage, "the share of memory must be above 0 and at most 1",
                "--gpu-memory-utilization", "for example 0.92");
  return {};
}

bool keeps_tokens(const EmbeddedCache& cache) {
  return std::ranges::any_of(cache.groups, schedule::is_per_token);
}

Result<std::int64_t> length_of(const model::ModelSpec& spec, const EmbeddedOptions& options,
                               const EmbeddedCache& cache) {
  const std::int64_t context = spec.context_tokens();
  const std::int64_t otherwise = context == 0 && !keeps_tokens(cache) ? kLengthOfStates : context;
  const std::int64_t length = options.max_model_len.value_or(otherwise);
  if (options.max_model_len && length < 1)
    return fail(ErrorCode::kUsage, fmt::format("requests of {} tokens were asked for", length),
                "--max-model-len", "ask for at least 1");
  if (length < 1)
    return fail(ErrorCode::kMalformed, "the model states no sound context length, and none was asked for",
                "config.json: /max_position_embeddings",
                "name the longest request in tokens: --max-model-len");
  if (context > 0 && length > context)
    return fail(ErrorCode::kUsage,
                fmt::format("requests of {} tokens were asked for, but the model's context is {} tokens",
                            length, context),
                "--max-model-len", fmt::format("ask for at most {}", context));
  return length;
}

Result<Division> prepare(const model::ModelSpec& spec, Bytes weights, const EmbeddedOptions& options,
                         std::optional<Bytes> available) {
  PLIMSOLL_TRY_VOID(check(options));
  PLIMSOLL_TRY_VOID(check_embedded(spec));
  const EngineRules rules = rules_for({});
  Division division{spec, options, rules, weights, available, {}, {}, 0};
  PLIMSOLL_TRY(
      division.cache,
      lay_out_cache(spec, embedded_cache_format(options.compute, options.cache_format), options.block_size));
  PLIMSOLL_TRY(division.length, length_of(spec, options, division.cache));
  const std::int64_t block = division.cache.bytes_per_block.value;
  const auto request = checked_product(block, division.blocks_for(division.length));
  const auto demand = request ? checked_product(*request, std::max(1, options.max_num_seqs)) : std::nullopt;
  const auto given = checked_product(block, options.num_blocks.value_or(1));
  if (!demand || !given)
    return fail(ErrorCode::kUsage, "a KV cache of this size does not fit 63 bits",
                "--max-model-len, --max-num-seqs, --num-gpu-blocks-override", "ask for less");
  if (available) {
    const double share = options.memory_utilization.value_or(rules.memory_utilization);
    division.budget = Bytes(static_cast<std::int64_t>(static_cast<double>(available->value) * share));
  } else if (!division.pool_is_given()) {
    return fail(ErrorCode::kUsage,
                "how much memory there is is not known, and no size of the KV cache was given",
                "--kv-cache-memory-bytes", "name one of the two");
  }
  return division;
}

/// Blocks of the pool for requests of `length` tokens, and what decided them.
struct Pool {
  std::int64_t blocks = 0;
  PoolSource source = PoolSource::kAvailableMemory;
};

Pool pool_for(const Division& d, const Workspace& space, std::int64_t length) {
  if (d.keeps_nothing()) return {0, PoolSource::kDemand};
  if (d.options.num_blocks) return {*d.options.num_blocks, PoolSource::kFlag};
  if (d.options.kv_cache_bytes)
    return {*d.options.kv_cache_bytes / d.cache.bytes_per_block, PoolSource::kFlag};
  Pool pool{std::max<std::int64_t>(0, d.left_for_pool(space).value) / d.cache.bytes_per_block.value,
            PoolSource::kAvailableMemory};
  const std::int64_t of_request = d.blocks_for(length);
  const std::int64_t demand = of_request * std::max(1, d.options.max_num_seqs);
  const std::int64_t limit = std::max(d.rules.default_pool_limit / d.cache.bytes_per_block, of_request);
  if (demand < pool.blocks) pool = {demand, PoolSource::kDemand};
  if (limit < pool.blocks) pool = {limit, PoolSource::kDefaultLimit};
  return pool;
}

/// The longest request that some pool would hold; the buffers shrink and grow with it, so it is searched for.
Result<std::optional<Tokens>> longest_of(const Division& d) {
  const auto holds = [&](std::int64_t length) {
    const auto space = d.workspace(length);
    if (d.keeps_nothing()) return space && d.has_room_for(*space);
    return space && pool_for(d, *space, length).blocks >= d.blocks_for(length);
  };
  PLIMSOLL_TRY(const Workspace least, d.workspace(1));
  std::int64_t low = 0;
  std::int64_t high = pool_for(d, least, d.length).blocks;
  if (d.keeps_nothing())
    high = 1;
  else if (!d.pool_is_given())
    high = std::max<std::int64_t>(0, d.left_for_pool(least) / d.cache.bytes_per_block);
  high = checked_product(high, d.options.block_size).value_or(INT64_MAX);
  // A window that has slid takes no more blocks, however long the sequence.
  if (!d.cache.is_growing() && high > 0) high = std::max(d.length, d.spec.context_tokens());
  if (d.spec.context_tokens() > 0) high = std::min(high, d.spec.context_tokens());
  while (low < high) {
    const std::int64_t middle = low + (high - low + 1) / 2;
    if (holds(middle))
      low = middle;
    else
      high = middle - 1;
  }
  return low > 0 ? std::optional(Tokens(low)) : std::nullopt;
}

std::string refusal(const Division& d, const EmbeddedAnswer& answer) {
  if (d.keeps_nothing())
    return fmt::format(
        "Texts of {} tokens do not fit: weights of {}, buffers of {} and {} for the process are more than "
        "the {} "
        "that may be used.",
        answer.plan.max_model_len.value, as_gib(answer.plan.weights), as_gib(answer.plan.workspace),
        as_gib(answer.plan.process_base), as_gib(answer.budget));
  const EmbeddedPlan& plan = answer.plan;
  if (answer.holds_one_request())  // the given pool itself is too much for the machine
    return fmt::format(
        "The KV cache of {} that was asked for, beside {} of weights, {} of buffers and {} for the process, "
        "needs "
        "{} of memory, and {} is available.",
        as_gib(plan.kv_cache), as_gib(plan.weights), as_gib(plan.workspace), as_gib(plan.process_base),
        as_gib(plan.peak), as_gib(d.available.value_or(Bytes(0))));
  if (!answer.longest)
    return fmt::format(
        "No available memory for the cache blocks: weights of {}, buffers of {} and {} for the process leave "
        "no "
        "room for one block of {} bytes in {}.",
        as_gib(plan.weights), as_gib(plan.workspace), as_gib(plan.process_base),
        with_commas(plan.cache.bytes_per_block.value),
        d.options.kv_cache_bytes ? "the " + as_gib(*d.options.kv_cache_bytes) + " given for the cache"
                                 : "the " + as_gib(answer.budget) + " that may be used");
  return fmt::format(
      "To serve at least one request with the model's max seq len ({}), ({} KV cache is needed, which is "
      "larger "
      "than the available KV cache memory ({}). Based on the available memory, the estimated maximum model "
      "length "
      "is {}. Try increasing `kv_cache_memory_bytes` or decreasing `max_model_len` when initializing the "
      "engine.",
      plan.max_model_len.value, as_gib(answer.required_kv_cache), as_gib(plan.kv_cache),
      answer.longest->value);
}

EmbeddedPlan laid_out(const Division& d, const Workspace& space, const Pool& pool, std::int64_t length) {
  EmbeddedPlan plan;
  plan.weights = d.weights;
  plan.kv_cache = d.cache.bytes_per_block * pool.blocks;
  plan.workspace = space.total();
  plan.process_base = d.rules.process_base;
  // Saturates: a pool that was asked for may be larger than any memory.
  std::int64_t peak = plan.weights.value;
  for (const Bytes part : {plan.kv_cache, plan.workspace, plan.process_base})
    peak = checked_sum(peak, part.value).value_or(INT64_MAX);
  plan.peak = Bytes(peak);
  plan.num_blocks = Blocks(pool.blocks);
  plan.cache = d.cache;
  plan.max_model_len = Tokens(length);
  if (d.keeps_nothing()) {
    const std::int64_t tokens = step_tokens(d.spec, d.options.max_num_batched_tokens, length);
    plan.max_concurrency =
        static_cast<double>(std::min<std::int64_t>(tokens / length, d.options.max_num_seqs));
    return plan;
  }
  plan.max_concurrency = static_cast<double>(pool.blocks) / static_cast<double>(d.blocks_for(length));
  const bool is_one_table = d.cache.groups.size() == 1 && d.cache.is_growing();
  plan.kv_tokens =
      is_one_table ? Tokens(pool.blocks * d.options.block_size)
                   : Tokens(static_cast<std::int64_t>(plan.max_concurrency * static_cast<double>(length)));
  return plan;
}

}  // namespace

std::string capacity_line(const EmbeddedPlan& plan) {
  return fmt::format("CPU KV cache size: {} tokens, Maximum concurrency for {} tokens per request: {:.2f}x",
                     with_commas(plan.kv_tokens.value), with_commas(plan.max_model_len.value),
                     plan.max_concurrency);
}

CacheFormat embedded_cache_format(EmbeddedCompute compute, const std::optional<CacheFormat>& asked) {
  return asked.value_or(compute == EmbeddedCompute::kFloat32 ? DType::kF32 : DType::kBF16);
}

Result<EmbeddedAnswer> size_embedded(const model::ModelSpec& spec, Bytes stored_weights,
                                     const EmbeddedOptions& options, std::optional<Bytes> available) {
  PLIMSOLL_TRY(const Division division, prepare(spec, stored_weights, options, available));
  EmbeddedAnswer answer;
  PLIMSOLL_TRY(answer.longest, longest_of(division));
  std::int64_t length = division.length;
  if (options.longest_model_len && answer.longest) length = std::min(length, answer.longest->value);

  PLIMSOLL_TRY(answer.workspace, division.workspace(length));
  const Pool pool = pool_for(division, answer.workspace, length);
  answer.plan = laid_out(division, answer.workspace, pool, length);
  answer.pool_source = pool.source;
  answer.budget = division.budget.value_or(Bytes(0));
  answer.available_kv_cache =
      division.pool_is_given() ? answer.plan.kv_cache : division.left_for_pool(answer.workspace);
  answer.required_kv_cache = division.cache.bytes_per_block * division.blocks_for(length);
  // A pool that was given is held to all that is free, not to a share of it: whoever names it takes the rest
  // on.
  constexpr Bytes kBeyondCounting(INT64_MAX);  // where a saturated sum ends
  const bool is_within_memory = !division.pool_is_given() || (available ? answer.plan.peak <= *available
                                                                        : answer.plan.peak < kBeyondCounting);
  answer.fits = is_within_memory && answer.holds_one_request() &&
                (!division.keeps_nothing() || division.has_room_for(answer.workspace));
  if (!answer.fits) answer.message = refusal(division, answer);
  return answer;
}

Result<EmbeddedPlan> plan_embedded(const model::ModelSpec& spec, Bytes stored_weights,
                                   const EmbeddedOptions& options, std::optional<Bytes> available) {
  PLIMSOLL_TRY(EmbeddedAnswer answer, size_embedded(spec, stored_weights, options, available));
  if (answer.fits) return answer.plan;
  if (options.kv_cache_bytes && !answer.holds_one_request())
    return fail(
        ErrorCode::kNo, answer.message, "--kv-cache-memory-bytes",
        fmt::format("give at least {} bytes, or a smaller --max-model-len", answer.required_kv_cache.value));
  const bool has_length = answer.longest && answer.longest < answer.plan.max_model_len;
  return fail(ErrorCode::kNo, answer.message, "--max-model-len",
              has_length ? fmt::format("start with --max-model-len {}", answer.longest->value)
                         : "free memory, or take a smaller model");
}

}  // namespace plimsoll::memory
