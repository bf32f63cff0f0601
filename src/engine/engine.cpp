// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/division.h"
#include "base/machine.h"
#include "engine/kv_pool.h"
#include "engine/load_quantization.h"
#include "engine/paged_engine.h"
#include "engine/panel_weights.h"
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

/// The blocks that a sequence of some length has in one group.
struct GroupBlocks {
  std::int64_t begin = 0;  // in the pool
  std::int64_t count = 0;
};

Result<std::vector<GroupBlocks>> blocks_of(const memory::EmbeddedCache& cache, std::int64_t length) {
  std::vector<GroupBlocks> blocks;
  std::int64_t next = 0;
  for (const schedule::CacheGroup& group : cache.groups) {
    const std::int64_t first = schedule::first_kept(group, length, cache.block_size);
    const std::int64_t count =
        schedule::is_per_token(group) ? divided_up(length, cache.block_size) - first : 1;
    blocks.push_back({next, count});
    next += count;
  }
  const auto bytes = checked_product(next, cache.bytes_per_block.value);
  const auto available = read_machine().memory_available;
  if (!bytes || (available && *bytes > available->value))
    return fail(
        ErrorCode::kNo,
        fmt::format("a sequence of {} tokens takes up to {} in {} blocks of {} bytes, and {} of memory "
                    "is available",
                    with_commas(length), bytes ? as_gib(Bytes(*bytes)) : "more than 63 bits count",
                    with_commas(next), with_commas(cache.bytes_per_block.value),
                    available ? as_gib(*available) : "an unknown amount"),
        "--measure", "measure a shorter sequence, or a smaller model");
  return blocks;
}

/// Writes a sequence into a pool, the layers of one kind after those of the other.
class Measurement {
 public:
  Measurement(const model::ModelSpec& spec, const memory::EmbeddedCache& cache, const KvPool& pool,
              std::vector<GroupBlocks> blocks)
      : spec_(spec), cache_(cache), pool_(pool), blocks_(std::move(blocks)) {
    for (const GroupBlocks& group : blocks_) begins_.push_back(group.begin);
  }

  std::vector<ResidentKv> run() {
    std::vector<std::vector<int>> layers;  // [kinds]
    for (int layer = 0; layer < static_cast<int>(spec_.layers.size()); ++layer) {
      const model::Layer& of = spec_.layers[static_cast<std::size_t>(layer)];
      if (const int group = group_of(layer); group >= 0)
        note({model::kind_of(of.mixer), cache_.window_of(static_cast<std::size_t>(group))}, layer, layers);
      if (const model::State* state = memory::state_of(of))
        note({model::to_string(state->kind), std::nullopt}, layer, layers);
    }
    Bytes seen;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      for (const int layer : layers[i]) write(layer, kinds_[i].kind);
      const Bytes resident = pool_.resident_bytes();
      kinds_[i].bytes = resident - seen;
      seen = resident;
    }
    return kinds_;
  }

 private:
  int group_of(int layer) const { return cache_.places[static_cast<std::size_t>(layer)].group; }

  void note(const ResidentKv& kind, int layer, std::vector<std::vector<int>>& layers) {
    const auto known = std::ranges::find_if(kinds_, [&](const ResidentKv& one) {
      return one.kind == kind.kind && one.window_tokens == kind.window_tokens;
    });
    const auto i = static_cast<std::size_t>(known - kinds_.begin());
    if (known == kinds_.end()) {
      kinds_.push_back(kind);
      layers.emplace_back();
    }
    layers[i].push_back(layer);
  }

  void write(int layer, std::string_view kind) const {
    const model::Layer& of = spec_.layers[static_cast<std::size_t>(layer)];
    const model::State* state = memory::state_of(of);
    if (state && model::to_string(state->kind) == kind) return pool_.touch_state(layer, begins_);
    const GroupBlocks& blocks = blocks_[static_cast<std::size_t>(group_of(layer))];
    for (std::int64_t block = blocks.begin; block < blocks.begin + blocks.count; ++block)
      for (std::int64_t slot = 0; slot < cache_.block_size; ++slot) pool_.touch_token(layer, block, slot);
  }

  const model::ModelSpec& spec_;
  const memory::EmbeddedCache& cache_;
  const KvPool& pool_;
  std::vector<GroupBlocks> blocks_;   // [groups]
  std::vector<std::int64_t> begins_;  // [groups]
  std::vector<ResidentKv> kinds_;
};

}  // namespace

Result<ResidentKvReport> measure_resident_kv(const model::ModelSpec& spec, const EngineOptions& options,
                                             Tokens length) {
  PLIMSOLL_TRY_VOID(memory::check_embedded(spec));
  const auto format = memory::embedded_cache_format(compute_of(options.mode), options.cache_format);
  int block_size = options.block_size;
  PLIMSOLL_TRY(memory::EmbeddedCache cache, memory::lay_out_cache(spec, format, block_size));
  while (!fills_whole_blocks(cache, length.value, block_size)) --block_size;
  PLIMSOLL_TRY(cache, memory::lay_out_cache(spec, format, block_size));
  PLIMSOLL_TRY(std::vector<GroupBlocks> blocks, blocks_of(cache, length.value));
  const std::int64_t num_blocks = blocks.back().begin + blocks.back().count;
  PLIMSOLL_TRY(const KvPool pool, KvPool::create(spec, cache, Blocks(num_blocks)));
  return ResidentKvReport{block_size, Measurement(spec, cache, pool, std::move(blocks)).run()};
}

Result<std::unique_ptr<Engine>> Engine::load(std::shared_ptr<const artifact::Artifact> artifact,
                                             const model::ModelSpec& spec, const EngineOptions& asked) {
  if (const auto broken = artifact::first_error(artifact->findings())) return fail(*broken);
  PLIMSOLL_TRY_VOID(memory::check_embedded(spec));
  const Machine machine = read_machine();
  EngineOptions options = asked;
  if (options.threads <= 0) options.threads = machine.cores.usable;
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
  if (options.mode == ComputeMode::kAuto) {
    ThreadPool team(options.threads);
    const std::string_view quantization =
        options.quantization ? memory::to_string(*options.quantization) : std::string_view();
    PLIMSOLL_TRY_VOID(pack_at_load(*artifact, {options.packed_cache_dir, quantization, options.on_progress},
                                   team, weights));
  }
  sizes.max_model_len = plan.max_model_len.value;
  options.max_num_batched_tokens =
      static_cast<int>(memory::step_tokens(spec, options.max_num_batched_tokens, plan.max_model_len.value));
  if (model::is_encoder(spec)) options.enable_prefix_caching = false;
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
