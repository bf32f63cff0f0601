// SPDX-License-Identifier: Apache-2.0
// A row for SGLang: what its share of a GPU leaves for pools, and what they hold.
#include <fmt/format.h>

#include <algorithm>

#include "facts/sglang.h"
#include "memory/kv_dtype.h"
#include "memory/memory.h"
#include "plan/layout.h"
#include "plan/rows.h"
#include "plan/vllm_memory.h"

namespace plimsoll::plan {
namespace {

constexpr const char* kSource = "docs/formulas/sglang.md";
// Taken by context and others before weights are loaded. Source: recorded starts, see the page.
constexpr Bytes kBeforeLoad(kGiB / 2), kBeforeLoadBand(kGiB / 2);
// Graphs and what runs in them, of pools that are sized behind them.
constexpr Bytes kGraphs(5 * kGiB / 2), kGraphsBand(3 * kGiB / 2);
constexpr Bytes kEncoderBand(3 * kGiB);
constexpr std::int64_t kPrefillTokens = 16384;  // --max-prefill-tokens

class SglangRow {
 public:
  explicit SglangRow(const Question& question) : question_(question), settings_(question.settings) {}

  Result<Row> answer() {
    PLIMSOLL_TRY_VOID(read_ranks());
    PLIMSOLL_TRY(pool_settings_.cache_dtype, memory::kv_dtype(settings_.kv_cache_dtype, spec()));
    cache_name_ = stored_bytes(pool_settings_.cache_dtype, 1) == Bytes(1)
                      ? "fp8"
                      : std::string(name(pool_settings_.cache_dtype));
    auto fault = layout_fault(spec(), ranks_);
    if (!fault) fault = parallel_fault(spec(), {.tensor = ranks_, .pipeline = stages_});
    if (fault) return impossible_row(question_, cache_name_, std::move(*fault));
    Row row;
    const std::vector<int> places =
        memory::sglang_stages(static_cast<std::int64_t>(spec().layers.size()), stages_);
    VllmRanks ranks{.tensor = ranks_, .pipeline = stages_};
    if (stages_ > 1) ranks.stage_of_layer = places;
    PLIMSOLL_TRY_VOID(add_rank_weights(question_, ranks, row));
    for (int stage = 0; stages_ > 1 && stage < stages_; ++stage)
      row.stage_layers.push_back(static_cast<int>(std::count(places.begin(), places.end(), stage)));
    read_budget(row);
    pool_settings_.tensor_parallel = ranks_;
    pool_settings_.pipeline_parallel = stages_;
    pool_settings_.page_size = settings_.block_size.value_or(1);
    pool_settings_.max_requests = memory::sglang_requests(settings_.max_num_seqs, has_drafts());
    if (has_drafts()) {
      pool_settings_.draft_tokens = settings_.num_speculative_tokens + 1;
      pool_settings_.draft_layers = draft_layers();
    }
    pool_settings_.has_window_pool = facts::sglang_has_window_pool(spec().architecture);
    pool_settings_.has_prefix_cache = settings_.prefix_caching.value_or(true);
    pool_settings_.context_tokens = length_of(question_);
    auto pool = memory::sglang_pool(spec(), pool_settings_, available_);
    if (!pool && pool.error().code == ErrorCode::kNo)
      return impossible_row(question_, cache_name_,
                            {"TP_DIVISIBILITY", FindingLevel::kError, FindingKind::kCheckFailed,
                             "--tensor-parallel-size", pool.error().message, pool.error().fix});
    if (!pool) return fail(std::move(pool).error());
    std::int64_t length = pool_settings_.context_tokens;
    if (settings_.longest_model_len && pool->tokens > 0) length = std::min(length, pool->tokens);
    fill(row, *pool, length);
    return row;
  }

 private:
  const model::ModelSpec& spec() const { return question_.model->spec; }
  bool has_drafts() const { return settings_.num_speculative_tokens > 0; }
  int draft_layers() const {
    return facts::sglang_draft_layers(spec().architecture, static_cast<int>(spec().mtp_layers.size()));
  }

  Status read_ranks() {
    const std::int64_t gpus = question_.target ? question_.target->count : 1;
    stages_ = settings_.pipeline_parallel.value_or(1);
    ranks_ = settings_.tensor_parallel.value_or(static_cast<int>(std::max<std::int64_t>(1, gpus / stages_)));
    if (question_.target && gpus > 1 && std::int64_t{ranks_} * stages_ != gpus)
      return fail(
          ErrorCode::kUsage,
          fmt::format("{} tensor-parallel ranks in {} stages are not the {} GPUs", ranks_, stages_, gpus),
          "--gpu", "give as many GPUs as ranks");
    if (has_drafts() && spec().mtp_layers.empty())
      return fail(ErrorCode::kUnsupported, "the model has no layers that predict further tokens",
                  "--speculative-config", "leave it out");
    if (has_drafts() && stages_ > 1)
      return fail(ErrorCode::kUnsupported, "how SGLang's stages share out drafts is not known here",
                  "--speculative-config, --pipeline-parallel-size", "plan with one of them");
    if (!settings_.kv_cache_bytes && (!question_.target || question_.target->is_here))
      return fail(ErrorCode::kUsage, "planning for SGLang needs a GPU, or the pool's size",
                  "--gpu, --kv-cache-memory-bytes", "for example --gpu H100, or --gpu 24GB");
    return {};
  }

  void read_budget(const Row& row) {
    memory::SglangLayout layout;
    layout.tensor_parallel = ranks_;
    layout.pipeline_parallel = stages_;
    layout.is_latent = memory::sglang_keeps_latents(spec());
    layout.is_eager = settings_.is_eager;
    layout.chunk = settings_.max_num_batched_tokens;
    layout.requests = memory::sglang_requests(settings_.max_num_seqs, has_drafts());
    const Bytes memory = question_.target ? question_.target->memory : Bytes(80 * kGiB);
    defaults_ = memory::sglang_defaults(memory, layout);
    share_ = settings_.memory_utilization.value_or(defaults_.static_share);
    if (settings_.kv_cache_bytes) {
      available_ = *settings_.kv_cache_bytes;
      return;
    }
    const Bytes at_start = question_.target->available.value_or(memory - kBeforeLoad);
    if (!question_.target->available) band_ += kBeforeLoadBand;
    budget_ = Bytes(static_cast<std::int64_t>(static_cast<double>(at_start.value) * share_));
    before_load_ = memory - at_start;
    if (defaults_.sizes_after_capture) {
      graphs_ = kGraphs;
      band_ += kGraphsBand;
    }
    if (!spec().encoders.empty() && !settings_.is_language_only) band_ += kEncoderBand;
    available_ = *budget_ - row.weights - graphs_;
  }

  void fill(Row& row, const memory::SglangPool& pool, std::int64_t length) const {
    const Model& model = *question_.model;
    row.model = model.source;
    row.title = model.title;
    row.target = question_.target;
    row.kv_cache_dtype = cache_name_;
    row.tensor_parallel = ranks_;
    row.is_expert_parallel = settings_.is_expert_parallel;
    row.fits = pool.tokens >= length;
    row.kv_cache = std::max(Bytes(0), available_);
    row.total_kv_cache = row.kv_cache * ranks_ * stages_;
    row.kv_bytes_per_token = pool.token_bytes + pool.window_token_bytes;
    row.required_kv_cache = required(pool, length);
    row.block_size = pool_settings_.page_size;
    row.bytes_per_block = row.kv_bytes_per_token * pool_settings_.page_size;
    if (stages_ > 1)
      for (const Bytes bytes : pool.stages) row.stage_blocks.push_back(bytes * pool_settings_.page_size);
    row.num_layers = static_cast<std::int64_t>(spec().layers.size());
    row.num_blocks = Blocks(pool.tokens / pool_settings_.page_size);
    row.kv_tokens = Tokens(pool.tokens);
    row.max_model_len = Tokens(length);
    row.max_concurrency = std::min(static_cast<double>(pool.max_requests),
                                   static_cast<double>(pool.tokens) / static_cast<double>(length));
    if (pool.tokens > 0)
      row.estimated_max_model_len = Tokens(std::min(pool.tokens, std::max(length, spec().context_tokens())));
    row.budget = budget_;
    row.limited_by = budget_ ? "memory" : "flag";
    if (row.fits)
      row.log_line = fmt::format(
          "max_total_num_tokens={}, chunked_prefill_size={}, max_prefill_tokens={}, max_running_requests={}, "
          "context_len={}",
          pool.tokens, defaults_.chunk_tokens, kPrefillTokens, pool.max_requests, length);
    else
      row.engine_message = refusal(pool, length);
    add_parts(row, pool);
    add_findings(row, pool);
  }

  // A request's tokens in each pool, and its states.
  static Bytes required(const memory::SglangPool& pool, std::int64_t length) {
    Bytes bytes = (pool.token_bytes + pool.window_token_bytes) * length;
    if (pool.tokens > 0 && pool.window_tokens > 0 && pool.window_tokens != pool.tokens)
      bytes = pool.token_bytes * length +
              Bytes(static_cast<std::int64_t>(
                  static_cast<double>(pool.window_token_bytes.value) * static_cast<double>(length) *
                  static_cast<double>(pool.window_tokens) / static_cast<double>(pool.tokens)));
    return bytes + pool.state_bytes;
  }

  std::string refusal(const memory::SglangPool& pool, std::int64_t length) const {
    if (pool.tokens <= 0)
      return fmt::format(
          "Not enough memory. Please try to increase --mem-fraction-static. Current value: "
          "mem_fraction_static={}",
          share_);
    return fmt::format("the engine starts, but its pool of {} tokens takes no request of {}",
                       with_commas(pool.tokens), with_commas(length));
  }

  void add_parts(Row& row, const memory::SglangPool& pool) const {
    const char* given = "not asked: the pool's size is given";
    const bool is_given = !budget_;
    row.parts = {
        {"weights", row.weights, ""},
        {"kv_cache", row.kv_cache,
         pool.state_slots > 0 ? fmt::format("{} slots of states of {} bytes in it", pool.state_slots,
                                            with_commas(pool.state_bytes.value))
                              : ""},
        {"activation", Bytes(0), is_given ? given : "in cuda_graph and the margin"},
        {"sampler", Bytes(0), is_given ? given : "in the margin"},
        {"attention_workspace", Bytes(0), is_given ? given : "in the margin"},
        {"moe_workspace", Bytes(0), is_given ? given : "in the margin"},
        {"cuda_graph", graphs_,
         is_given             ? given
         : graphs_ > Bytes(0) ? ""
                              : "in the margin: captured behind the pools"},
        {"non_torch", before_load_, is_given ? given : "the context, before weights are loaded"},
        {"encoder", Bytes(0), spec().encoders.empty() ? "no encoder runs" : "not modelled: see the band"},
        {"processor_cache", Bytes(0), "not modelled"},
        {"draft", Bytes(0), has_drafts() ? "in weights and kv_cache" : "no drafts"},
        {"lora", Bytes(0), "no adapters"}};
    const Bytes margin = budget_ ? question_.target->memory - before_load_ - *budget_ : Bytes(0);
    row.parts.push_back({"margin", std::max(Bytes(0), margin),
                         is_given ? given : fmt::format("1 - {}: --mem-fraction-static", share_)});
    add_weights_basis(row, std::int64_t{ranks_} * stages_);
    if (!budget_) return;
    row.error_bar = band_ + Bytes(row.weights_bar.value / (std::int64_t{ranks_} * stages_));
    add_pool_basis(row, "assumed", kSource);
    for (const auto& [part, bytes] :
         {std::pair<const char*, Bytes>{"cuda_graph", graphs_}, {"non_torch", before_load_}})
      row.basis.push_back(basis_with_bar(part_field(row, part), "assumed", bytes, band_, kSource));
    row.basis.push_back({"budget_bytes_per_gpu", "assumed", {}, {}, kSource});
    row.basis.push_back({"estimated_max_model_len", "assumed", {}, {}, kSource});
  }

  void add_findings(Row& row, const memory::SglangPool& pool) const {
    if (auto copies = kv_replication(spec(), ranks_)) row.findings.push_back(std::move(*copies));
    if (pool.window_tokens > 0 && pool.window_tokens != pool.tokens)
      row.findings.push_back({"TWO_POOLS", FindingLevel::kInfo, FindingKind::kCheckFailed,
                              "--swa-full-tokens-ratio",
                              fmt::format("layers with windows have a pool of {} tokens of their own",
                                          with_commas(pool.window_tokens)),
                              "kv_tokens is that of the other layers"});
    if (has_drafts() && draft_layers() == 0)
      row.findings.push_back({"DRAFT_BESIDE_POOL", FindingLevel::kWarning, FindingKind::kCheckFailed,
                              "--speculative-config",
                              "SGLang sizes the pool without the layers that draft in this model; their keys "
                              "and values are taken from what it leaves free",
                              "lower --mem-fraction-static if the start runs out of memory"});
    if (!spec().encoders.empty() && !settings_.is_language_only)
      row.findings.push_back(
          {"ENCODER_PROFILE", FindingLevel::kWarning, FindingKind::kCheckFailed, "config.json",
           "what SGLang keeps back for the model's encoder is not modelled, and the band is "
           "wider for it",
           "plan with --language-model-only where only text is served"});
  }

  const Question& question_;
  const Settings& settings_;
  memory::SglangPoolSettings pool_settings_;
  memory::SglangDefaults defaults_;
  std::string cache_name_;
  int ranks_ = 1, stages_ = 1;
  double share_ = 0;
  std::optional<Bytes> budget_;  // absent: the pool's size was given
  Bytes available_, graphs_, before_load_, band_;
};

}  // namespace

Result<Row> make_sglang_row(const Question& question) {
  return SglangRow(question).answer();
}

}  // namespace plimsoll::plan
