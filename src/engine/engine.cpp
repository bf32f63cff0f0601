// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/division.h"
#include "base/machine.h"
#include "engine/kv_pool.h"
#include "engine/load_quantization.h"
#include "engine/paged_engine.h"
#include "memory/embedded.h"
#include "memory/load_quantization.h"
#include "schedule/cache_group.h"

namespace plimsoll::engine {

std::string_view to_string(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "error";
}

namespace {

memory::EmbeddedCompute compute_of(ComputeMode mode) {
  return mode == ComputeMode::kFloat32 ? memory::EmbeddedCompute::kFloat32 : memory::EmbeddedCompute::kAuto;
}

memory::EmbeddedOptions memory_options(const EngineOptions& options) {
  memory::EmbeddedOptions result;
  result.compute = compute_of(options.mode);
  result.cache_format = options.cache_format;
  result.threads = options.threads;
  result.block_size = options.block_size;
  result.max_model_len = options.max_model_len;
  result.kv_cache_bytes = options.kv_cache_bytes;
  result.num_blocks = options.num_blocks;
  result.max_num_seqs = options.max_num_seqs;
  result.max_num_batched_tokens = options.max_num_batched_tokens;
  result.memory_utilization = options.memory_utilization;
  return result;
}

/// By the headers alone.
Result<Bytes> planned_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec,
                              const EngineOptions& options) {
  if (options.quantization) return memory::loaded_weights_bytes(&artifact, spec, *options.quantization);
  return memory::stored_weights_bytes(artifact, spec).value_or(Bytes(0));
}

bool fills_whole_blocks(const memory::EmbeddedCache& cache, std::int64_t length, int block_size) {
  for (std::size_t group = 0; group < cache.groups.size(); ++group) {
    if (!schedule::is_per_token(cache.groups[group])) continue;
    const std::int64_t read = cache.window_of(group).value_or(length + 1) - 1;
    if (length % block_size != 0 || std::max<std::int64_t>(length - read, 0) % block_size != 0) return false;
  }
  return true;
}

}  // namespace

Result<ResidentKvReport> measure_resident_kv(const model::ModelSpec& spec, const EngineOptions& options,
                                             Tokens length) {
  PLIMSOLL_TRY_VOID(memory::check_embedded(spec));
  const auto format = memory::embedded_cache_format(compute_of(options.mode), options.cache_format);
  ResidentKvReport report{.block_size = options.block_size, .kinds = {}};
  PLIMSOLL_TRY(memory::EmbeddedCache cache, memory::lay_out_cache(spec, format, options.block_size));
  while (!fills_whole_blocks(cache, length.value, report.block_size)) --report.block_size;
  PLIMSOLL_TRY(cache, memory::lay_out_cache(spec, format, report.block_size));
  const std::int64_t num_blocks = divided_up(length.value, report.block_size);
  const auto all = checked_product(num_blocks, std::ssize(cache.groups));
  if (!all)
    return fail(ErrorCode::kUsage, "a cache of this size does not fit 63 bits", "--measure", "ask for less");
  PLIMSOLL_TRY(const KvPool pool, KvPool::create(spec, cache, Blocks(*all)));
  Bytes seen;
  std::int64_t next_block = 0;
  for (std::size_t group = 0; group < cache.groups.size(); ++group) {
    const bool is_state = !schedule::is_per_token(cache.groups[group]);
    const std::int64_t first = schedule::first_kept(cache.groups[group], length.value, report.block_size);
    const std::int64_t end = is_state ? first + 1 : num_blocks;
    for (std::int64_t block = first; block < end; ++block, ++next_block)
      for (std::int64_t slot = 0; slot < report.block_size; ++slot)
        pool.touch(static_cast<int>(group), next_block, slot);
    const Bytes resident = pool.resident_bytes();
    const auto window = cache.window_of(group);
    auto kind = std::ranges::find_if(report.kinds, [&](const ResidentKv& one) {
      return one.window_tokens == window && one.is_state == is_state;
    });
    if (kind == report.kinds.end()) kind = report.kinds.insert(kind, ResidentKv{window, is_state});
    kind->bytes += resident - seen;
    seen = resident;
  }
  return report;
}

Result<std::unique_ptr<Engine>> Engine::load(std::shared_ptr<const artifact::Artifact> artifact,
                                             const model::ModelSpec& spec, const EngineOptions& asked) {
  if (const auto broken = artifact::first_error(artifact->findings())) return fail(*broken);
  PLIMSOLL_TRY_VOID(memory::check_embedded(spec));
  const Machine machine = read_machine();
  EngineOptions options = asked;
  if (options.threads <= 0) options.threads = machine.num_cpus;
  memory::EmbeddedOptions sizes = memory_options(options);
  PLIMSOLL_TRY(const Bytes weight_bytes, planned_weights(*artifact, spec, options));
  PLIMSOLL_TRY(const memory::EmbeddedPlan plan,
               memory::plan_embedded(spec, weight_bytes, sizes, machine.memory_available));
  // Maps and checks tensors; matrices are read when they are first multiplied with.
  PLIMSOLL_TRY(ModelWeights weights, load_weights(*artifact, spec));
  if (options.quantization) {
    PLIMSOLL_TRY(const DType block, memory::block_at_load(*options.quantization));
    ThreadPool team(options.threads);
    PLIMSOLL_TRY_VOID(quantize_at_load(*artifact, block, team, options.on_progress, weights));
  }
  sizes.max_model_len = plan.max_model_len.value;
  PLIMSOLL_TRY(const memory::Workspace workspace, memory::embedded_workspace(spec, sizes));
  RopeTables ropes;
  PLIMSOLL_TRY(ropes.all, make_rope_table(spec.rope, plan.max_model_len.value, weights.rope_frequencies));
  if (spec.rope.kind == model::RopeKind::kLongrope &&
      plan.max_model_len.value > spec.rope.original_context_tokens) {
    PLIMSOLL_TRY(ropes.within, make_rope_table(spec.rope, spec.rope.original_context_tokens, {}));
  }
  if (spec.window_rope) {
    PLIMSOLL_TRY(ropes.windows, make_rope_table(*spec.window_rope, plan.max_model_len.value, {}));
  }
  PLIMSOLL_TRY(KvPool pool, KvPool::create(spec, plan.cache, plan.num_blocks));
  return std::make_unique<PagedEngine>(PagedEngine::Parts{std::move(artifact), spec, options, plan, workspace,
                                                          std::move(weights), std::move(ropes),
                                                          std::move(pool)});
}

}  // namespace plimsoll::engine
