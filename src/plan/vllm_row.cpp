// SPDX-License-Identifier: Apache-2.0
// A row for vLLM: its blocks, tokens and requests, and its own sentence, release by release.
#include <fmt/format.h>

#include <algorithm>

#include "memory/kv_dtype.h"
#include "memory/memory.h"
#include "plan/layout.h"
#include "plan/rows.h"
#include "plan/vllm_memory.h"

namespace plimsoll::plan {
namespace {

using memory::VllmCacheType;
using memory::VllmKind;

constexpr std::int64_t kCompressedBlock = 256;  // tokens, where latent vectors stand for several

bool has_kind(const std::vector<memory::VllmLayer>& layers, VllmKind kind) {
  return std::any_of(layers.begin(), layers.end(), [&](const auto& layer) { return layer.kind == kind; });
}

template <typename Test>
bool has_latent(const model::ModelSpec& spec, Test test) {
  return std::any_of(spec.layers.begin(), spec.layers.end(), [&](const model::Layer& layer) {
    const auto* latent = std::get_if<model::Latent>(&layer.mixer);
    return latent && test(*latent);
  });
}

bool is_sparse_latent(const model::ModelSpec& spec) {
  return has_latent(spec, [](const model::Latent& latent) { return latent.indexer.has_value(); });
}

bool has_latent_window(const model::ModelSpec& spec) {
  return has_latent(spec, [](const model::Latent& latent) { return latent.window_tokens.has_value(); });
}

/// One question turned into what the formulas take.
class VllmQuestion {
 public:
  explicit VllmQuestion(const Question& question)
      : question_(question),
        settings_(question.settings),
        rules_(memory::vllm_rules(question.engine_version)) {}

  Result<Row> answer() {
    PLIMSOLL_TRY_VOID(check_flags());
    PLIMSOLL_TRY_VOID(read_ranks());
    PLIMSOLL_TRY_VOID(read_cache());
    if (auto fault = layout_fault(spec(), ranks_))
      return impossible_row(question_, cache_name_, std::move(*fault));
    const Layout layout{ranks_, stages_, copies_, context_ranks_, settings_.is_expert_parallel};
    if (auto fault = parallel_fault(spec(), layout))
      return impossible_row(question_, cache_name_, std::move(*fault));
    auto layers = memory::vllm_layers(spec(), layer_settings());
    if (!layers && layers.error().code == ErrorCode::kNo) return cannot_split(layers.error());
    if (!layers) return fail(std::move(layers).error());
    Row row;
    const auto memory_or = vllm_memory(question_, rules_, {ranks_, stages_, copies_}, row);
    if (!memory_or && memory_or.error().code == ErrorCode::kNo) return cannot_split(memory_or.error());
    if (!memory_or) return fail(memory_or.error());
    const VllmMemory& memory = *memory_or;
    PLIMSOLL_TRY(memory::VllmKvPlan plan, plan_for(*layers, length_of(question_), memory));
    if (settings_.longest_model_len && plan.longest_len > 0) {
      PLIMSOLL_TRY(plan, plan_for(*layers, plan.longest_len, memory));
    }
    fill(row, *layers, plan, memory);
    return row;
  }

 private:
  const model::ModelSpec& spec() const { return question_.model->spec; }

  Row cannot_split(const Error& error) const {
    return impossible_row(question_, cache_name_,
                          {"TP_DIVISIBILITY", FindingLevel::kError, FindingKind::kCheckFailed,
                           "--tensor-parallel-size", error.message, error.fix});
  }

  // What the engine itself refuses, by its own defaults where no flag says otherwise. Source: SchedulerConfig
  // of vLLM 0.7.3 to 0.33.0.
  Status check_flags() const {
    const std::int64_t tokens = vllm_batch_of(question_).tokens;
    if (settings_.max_num_seqs && *settings_.max_num_seqs > tokens)
      return fail(
          ErrorCode::kUsage,
          fmt::format("a step of {} tokens cannot hold {} sequences", tokens, *settings_.max_num_seqs),
          "--max-num-batched-tokens", "give at least as many tokens as --max-num-seqs");
    if (settings_.longest_model_len && !rules_.fits_length)
      return fail(ErrorCode::kUnsupported,
                  fmt::format("vLLM {} does not choose a length by itself yet", question_.engine_version),
                  "--max-model-len", "give a number, or a release from 0.14 on");
    return {};
  }

  Status read_ranks() {
    stages_ = settings_.pipeline_parallel.value_or(1);
    copies_ = settings_.data_parallel.value_or(1);
    context_ranks_ = settings_.decode_context_parallel.value_or(1);
    const std::int64_t gpus = question_.target ? question_.target->count : 1;
    const std::int64_t others = std::int64_t{stages_} * copies_;
    const std::int64_t ranks =
        settings_.tensor_parallel.value_or(static_cast<int>(std::max<std::int64_t>(1, gpus / others)));
    if (question_.target && gpus > 1 && ranks * others != gpus)
      return fail(
          ErrorCode::kUsage,
          fmt::format("{} tensor-parallel times {} pipeline-parallel times {} data-parallel ranks are "
                      "not the {} GPUs",
                      ranks, stages_, copies_, gpus),
          "--gpu", "give as many GPUs as ranks");
    ranks_ = static_cast<int>(ranks);
    return {};
  }

  // For `auto` a checkpoint may say how its keys are stored; by release, and by who wrote it.
  bool takes_declared_cache() const {
    const auto& declared = question_.model->quantization;
    if (settings_.kv_cache_dtype != "auto" || settings_.quantization || !declared) return false;
    return declared->kv_cache_dtype() &&
           (declared->method == "compressed-tensors" ? rules_.reads_compressed_cache
                                                     : rules_.reads_modelopt_cache);
  }

  // Sparse latent attention keeps fp8 in rows of its own.
  Status read_cache() {
    const std::string asked = takes_declared_cache() ? "fp8" : settings_.kv_cache_dtype;
    if (const auto* format = memory::find_vllm_cache_format(asked)) return read_format(*format);
    PLIMSOLL_TRY(const DType dtype, memory::kv_dtype(asked, spec()));
    const int bytes = static_cast<int>(stored_bytes(dtype, 1).value_or(Bytes(0)).value);
    if (bytes != 1 && bytes != 2)
      return fail(ErrorCode::kUnsupported, "vLLM keeps its cache in 16 or 8 bit; not in " + asked,
                  "--kv-cache-dtype",
                  "give auto, bfloat16, float16, fp8, nvfp4, int8_per_token_head, turboquant_k8v4, ...");
    const bool is_sparse = is_sparse_latent(spec());
    if (asked == "fp8_ds_mla" && !is_sparse)
      return fail(ErrorCode::kUsage, "fp8_ds_mla is for sparse latent attention, which this model has not",
                  "--kv-cache-dtype", "give fp8");
    // Its kernels know no other cache.
    const bool is_compressed = is_sparse && asked == "auto" && has_latent_window(spec());
    cache_ = is_compressed ? VllmCacheType::kFp8DsMla
             : bytes == 2  ? VllmCacheType::k16Bit
             : is_sparse   ? VllmCacheType::kFp8DsMla
                           : VllmCacheType::k8Bit;
    cache_name_ = cache_ == VllmCacheType::kFp8DsMla ? "fp8_ds_mla"
                  : bytes == 1                       ? "fp8"
                                                     : std::string(name(dtype));
    return {};
  }

  Status read_format(const memory::VllmCacheFormat& format) {
    if (rules_.cache_formats < format.since)
      return fail(ErrorCode::kUnsupported,
                  fmt::format("vLLM {} does not know {} yet", question_.engine_version, format.name),
                  "--kv-cache-dtype", "give fp8, or a later release");
    cache_ = VllmCacheType::kPacked;
    format_ = &format;
    cache_name_ = format.name;
    return {};
  }

  memory::VllmLayerSettings layer_settings() const {
    memory::VllmLayerSettings layers;
    layers.format = format_;
    layers.cache = cache_;
    layers.tensor_parallel = ranks_;
    layers.num_speculative_tokens = settings_.num_speculative_tokens;
    layers.recurrent_dtype = settings_.state_dtype;
    layers.pads_latent = rules_.pads_latent;
    layers.aligns_rows = rules_.aligns_rows;
    layers.state_type = rules_.state_type;
    layers.has_fp8_index_keys = settings_.has_fp8_index_keys;
    layers.gdn_exports_checkpoint = settings_.uses_flashinfer_prefill;
    return layers;
  }

  memory::VllmStateMode state_mode(const std::vector<memory::VllmLayer>& layers) const {
    using Mode = memory::VllmStateMode;
    using Prefixes = memory::VllmPrefixStates;
    if (settings_.state_mode == Mode::kNone ||
        !settings_.prefix_caching.value_or(rules_.caches_prefixes_of_states))
      return Mode::kNone;
    const bool can_all = std::any_of(layers.begin(), layers.end(),
                                     [](const memory::VllmLayer& layer) { return layer.can_keep_all; });
    switch (rules_.prefix_states) {
      case Prefixes::kNone:
        return Mode::kNone;
      case Prefixes::kAll:
        return can_all ? Mode::kAll : Mode::kNone;
      case Prefixes::kAllOrAlign:
        return can_all && settings_.state_mode != Mode::kAlign ? Mode::kAll : Mode::kAlign;
      case Prefixes::kAlign:
        return can_all && settings_.state_mode == Mode::kAll ? Mode::kAll : Mode::kAlign;
    }
    return Mode::kNone;
  }

  // Stages overlap with one batch more than there are, but where the older runner has the model.
  int batches_in_flight(const std::vector<memory::VllmLayer>& layers) const {
    if (!settings_.is_async) return stages_;
    if (stages_ == 1) return 2;
    const bool is_mixture =
        std::any_of(spec().layers.begin(), spec().layers.end(),
                    [](const model::Layer& layer) { return layer.ffn.kind == model::FfnKind::kMoe; });
    const bool has_older = !rules_.overlaps_mixtures && (is_mixture || has_kind(layers, VllmKind::kState));
    return has_older ? stages_ : stages_ + 1;
  }

  Result<memory::VllmKvPlan> plan_for(const std::vector<memory::VllmLayer>& layers, std::int64_t length,
                                      const VllmMemory& memory) const {
    memory::VllmKvSettings kv;
    // Kernels of sparse latent attention and of latent vectors in 8 bit take blocks of 64.
    const bool is_compressed = has_kind(layers, VllmKind::kLatentWindow);
    const bool takes_64 = has_kind(layers, VllmKind::kIndexer) ||
                          (has_kind(layers, VllmKind::kLatent) && cache_ != VllmCacheType::k16Bit);
    kv.block_size = settings_.block_size.value_or(is_compressed ? kCompressedBlock
                                                  : takes_64    ? 64
                                                                : question_.rules.block_size);
    if (is_compressed && kv.block_size != kCompressedBlock)
      return fail(ErrorCode::kUsage, "compressed latent vectors lie in blocks of 256 tokens", "--block-size",
                  "leave the flag out");
    kv.state_mode = state_mode(layers);
    if (settings_.uses_flashinfer_prefill && !settings_.block_size &&
        kv.state_mode == memory::VllmStateMode::kAlign)
      kv.kernel_tokens = 64;
    kv.max_model_len = length;
    kv.longest_asked = spec().context_tokens();
    kv.max_num_batched_tokens = memory.batch.tokens;
    kv.batches_in_flight = batches_in_flight(layers);
    kv.is_hybrid_manager_on = settings_.hybrid_manager.value_or(!has_kind(layers, VllmKind::kChunked));
    kv.pipeline_parallel = stages_;
    kv.decode_context_parallel = context_ranks_;
    kv.num_speculative_tokens = settings_.num_speculative_tokens;
    kv.num_blocks_override = settings_.num_blocks;
    return memory::plan_vllm_kv(layers, static_cast<std::int64_t>(spec().layers.size()), kv, rules_,
                                memory.kv_cache);
  }

  void fill(Row& row, const std::vector<memory::VllmLayer>& layers, const memory::VllmKvPlan& plan,
            const VllmMemory& memory) const {
    const Model& model = *question_.model;
    row.model = model.source;
    row.title = model.title;
    row.target = question_.target;
    row.kv_cache_dtype = cache_name_;
    row.fits = plan.fits && memory.refusal.empty();
    row.tensor_parallel = ranks_;
    row.data_parallel = copies_;
    row.decode_context_parallel = context_ranks_;
    row.is_expert_parallel = settings_.is_expert_parallel;
    row.kv_cache = std::max(Bytes(0), memory.kv_cache);
    row.total_kv_cache = row.kv_cache * (std::int64_t{ranks_} * stages_ * copies_);
    row.required_kv_cache = plan.required;
    if (!plan.fits && plan.required > plan.available) row.missing = plan.required - plan.available;
    row.kv_bytes_per_token = memory::vllm_token_bytes(layers);
    row.stage_blocks = plan.bytes_per_block;
    row.bytes_per_block = *std::max_element(plan.bytes_per_block.begin(), plan.bytes_per_block.end());
    row.block_size = plan.block_size;
    row.groups = plan.groups;
    row.num_layers = static_cast<std::int64_t>(spec().layers.size());
    row.num_blocks = Blocks(plan.num_blocks);
    row.kv_tokens = Tokens(plan.kv_tokens);
    row.max_concurrency = plan.max_concurrency;
    row.max_model_len = Tokens(plan.max_model_len);
    if (plan.longest_len > 0) row.estimated_max_model_len = Tokens(plan.longest_len);
    if (row.fits)
      row.log_line = plan.message;
    else
      row.engine_message = !memory.refusal.empty()       ? memory.refusal
                           : settings_.longest_model_len ? memory::vllm_auto_refusal()
                                                         : plan.message;
    finish_vllm_row(question_, memory, {ranks_, stages_, copies_}, row);
    if (question_.target && question_.target->gpu)
      if (auto fault = kernel_fault(spec(), *question_.target->gpu, cache_ != VllmCacheType::k16Bit)) {
        fault->level = FindingLevel::kWarning;
        row.findings.push_back(std::move(*fault));
      }
    if (auto copies = kv_replication(spec(), ranks_)) row.findings.push_back(std::move(*copies));
    if (takes_declared_cache())
      row.findings.push_back(
          {"KV_CACHE_DECLARED", FindingLevel::kInfo, FindingKind::kCheckFailed,
           "config.json: " + question_.model->quantization->pointer,
           fmt::format("vLLM {} keeps keys and values in 8 bit here, as the config declares",
                       question_.engine_version),
           "--kv-cache-dtype bfloat16 keeps 16 bit"});
  }

  const Question& question_;
  const Settings& settings_;
  const memory::VllmRules& rules_;
  int ranks_ = 1, stages_ = 1, copies_ = 1, context_ranks_ = 1;
  VllmCacheType cache_ = VllmCacheType::k16Bit;
  const memory::VllmCacheFormat* format_ = nullptr;  // of a packed one
  std::string cache_name_;
};

}  // namespace

Result<Row> make_vllm_row(const Question& question) {
  return VllmQuestion(question).answer();
}

}  // namespace plimsoll::plan
