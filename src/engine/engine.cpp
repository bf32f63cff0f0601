// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "engine/graph.h"
#include "engine/kv_pool.h"
#include "engine/sampler.h"
#include "memory/embedded.h"
#include "schedule/schedule.h"

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

// One request from add() to its last output.
struct Request {
  SamplingParams params;
  Sampler sampler;
  std::int64_t prompt_tokens = 0;
  std::int64_t generated = 0;
  bool reported_prompt = false;  // cached_prompt_tokens, prompt logits and logprobs were handed out
  std::vector<std::vector<float>> prompt_logits;
  std::vector<std::optional<TokenLogprob>> prompt_logprobs;
  /// A preempted request computes its prompt again; its rows were handed out with its first token.
  bool wants_prompt_rows() const {
    return !reported_prompt && (params.return_prompt_logits || params.prompt_logprobs);
  }
};

memory::EmbeddedCompute compute_of(ComputeMode mode) {
  return mode == ComputeMode::kFloat32 ? memory::EmbeddedCompute::kFloat32 : memory::EmbeddedCompute::kAuto;
}

memory::EmbeddedOptions memory_options(const EngineOptions& options) {
  memory::EmbeddedOptions result;
  result.compute = compute_of(options.mode);
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

class PagedEngine final : public Engine {
 public:
  PagedEngine(std::shared_ptr<const artifact::Artifact> artifact, const model::ModelSpec& spec,
              const EngineOptions& options, const memory::EmbeddedPlan& plan,
              const memory::Workspace& workspace, ModelWeights weights, RopeTable rope, KvPool pool)
      : artifact_(std::move(artifact)),
        spec_(spec),
        plan_(plan),
        team_(options.threads),
        pool_(std::move(pool)),
        graph_(spec_, std::move(weights), std::move(rope), pool_, plan.block_size, workspace, team_),
        scheduler_(scheduler_options(options, plan)) {}

  MemoryReport memory() const override {
    MemoryReport report;
    report.weights = graph_.weight_bytes();
    report.kv_cache = pool_.bytes();
    report.num_blocks = plan_.num_blocks;
    report.block_size = plan_.block_size;
    report.kv_tokens = Tokens(plan_.num_blocks.value * plan_.block_size);
    report.kv_bytes_per_token = Bytes(pool_.bytes_per_block().value / plan_.block_size);
    report.max_model_len = plan_.max_model_len;
    report.max_concurrency = plan_.max_concurrency;
    report.capacity_line = memory::capacity_line(plan_);
    report.workspace = graph_.buffer_bytes();
    return report;
  }

  EngineStats stats() const override { return scheduler_.stats(); }
  std::int64_t vocab_size() const override { return spec_.vocab_size; }
  bool has_work() const override { return scheduler_.has_work() || !finished_early_.empty(); }
  Bytes resident_kv_bytes() const override { return pool_.resident_bytes(); }

  Result<RequestId> add(std::vector<TokenId> prompt, const SamplingParams& params, int priority,
                        std::string cache_salt) override;
  void cancel(RequestId request) override;
  std::vector<Output> step() override;

 private:
  static schedule::Options scheduler_options(const EngineOptions& options, const memory::EmbeddedPlan& plan) {
    schedule::Options result;
    result.num_blocks = plan.num_blocks;
    result.block_size = plan.block_size;
    result.max_num_seqs = options.max_num_seqs;
    result.max_num_batched_tokens = options.max_num_batched_tokens;
    result.enable_prefix_caching = options.enable_prefix_caching;
    result.is_static = options.batching == Batching::kStatic;
    return result;
  }

  void collect_rows();
  void keep_prompt_rows();
  void keep_prompt_row(Request& request, std::span<const TokenId> tokens, std::int64_t position,
                       std::span<const float> logits);
  void choose_tokens(std::vector<Output>& outputs);
  Output choose_one(RequestId id, Request& request, std::span<const float> logits);

  std::shared_ptr<const artifact::Artifact> artifact_;
  model::ModelSpec spec_;
  memory::EmbeddedPlan plan_;
  ThreadPool team_;
  KvPool pool_;
  Graph graph_;
  schedule::Scheduler scheduler_;
  std::unordered_map<RequestId, Request> requests_;
  std::vector<RequestId> finished_early_;  // cancelled since the last step
  schedule::Step step_;
  std::vector<Row> rows_;
  std::vector<std::int32_t> logit_rows_;   // of step_: rows whose logits choose a token,
  std::vector<RequestId> logit_requests_;  // and whose they are
  RequestId next_id_ = 1;
};

Result<RequestId> PagedEngine::add(std::vector<TokenId> prompt, const SamplingParams& params, int priority,
                                   std::string cache_salt) {
  const std::int64_t limit = plan_.max_model_len.value;
  const auto prompt_tokens = static_cast<std::int64_t>(prompt.size());
  if (prompt.empty())
    return fail(ErrorCode::kUsage, "the prompt holds no tokens", "prompt", "give at least one token");
  for (const TokenId token : prompt)
    if (token < 0 || token >= spec_.vocab_size)
      return fail(ErrorCode::kUsage,
                  fmt::format("token id {} is outside the vocabulary of {}", token, spec_.vocab_size),
                  "prompt", "check the tokenizer");
  if (prompt_tokens + 1 > limit)
    return fail(
        ErrorCode::kUsage,
        fmt::format(
            "maximum context length is {} tokens; the prompt has {}, which leaves no room for an answer",
            limit, prompt_tokens),
        "prompt", "shorten the prompt or raise --max-model-len");
  SamplingParams bounded = params;
  bounded.max_tokens = std::clamp<std::int64_t>(params.max_tokens, 1, limit - prompt_tokens);
  const RequestId id = next_id_++;
  // Prompt rows are only computed for tokens that are not reused: a salt of its own keeps such a request out
  // of the prefix cache.
  if (params.return_prompt_logits || params.prompt_logprobs) cache_salt += fmt::format("\x1f{}", id);
  Request request{bounded, Sampler(bounded, prompt), prompt_tokens, 0, false, {}, {}};
  if (params.return_prompt_logits) request.prompt_logits.resize(prompt.size());
  if (params.prompt_logprobs) request.prompt_logprobs.resize(prompt.size());
  schedule::Request scheduled;
  scheduled.id = id;
  scheduled.prompt = std::move(prompt);
  scheduled.final_tokens = Tokens(prompt_tokens + bounded.max_tokens);
  scheduled.priority = priority;
  scheduled.cache_salt = std::move(cache_salt);
  PLIMSOLL_TRY_VOID(scheduler_.add(std::move(scheduled)));
  requests_.emplace(id, std::move(request));
  return id;
}

void PagedEngine::cancel(RequestId id) {
  if (requests_.erase(id) == 0) return;
  scheduler_.finish(id);
  finished_early_.push_back(id);
}

void PagedEngine::collect_rows() {
  rows_.clear();
  for (const auto& work : step_.work) {
    const auto tokens = scheduler_.tokens(work.sequence);
    const auto blocks = scheduler_.blocks(work.sequence);
    for (std::int64_t i = 0; i < work.num_tokens; ++i) {
      const std::int64_t position = work.first_position + i;
      rows_.push_back({tokens[static_cast<std::size_t>(position)], position, blocks});
    }
  }
}

void PagedEngine::keep_prompt_row(Request& request, std::span<const TokenId> tokens, std::int64_t position,
                                  std::span<const float> logits) {
  const auto at = static_cast<std::size_t>(position);
  if (request.params.return_prompt_logits) request.prompt_logits[at].assign(logits.begin(), logits.end());
  // Row `position` predicts the token after it; the first prompt token is predicted by nothing.
  if (request.params.prompt_logprobs && position + 1 < request.prompt_tokens)
    request.prompt_logprobs[at + 1] = token_logprob(logits, tokens[at + 1], *request.params.prompt_logprobs);
}

// Logits of prompt rows for the requests that asked for them, as many at once as the buffer holds.
void PagedEngine::keep_prompt_rows() {
  std::int32_t first_row = 0;
  for (const auto& work : step_.work) {
    Request& request = requests_.at(work.sequence);
    const std::int64_t wanted =
        request.wants_prompt_rows()
            ? std::clamp<std::int64_t>(request.prompt_tokens - work.first_position, 0, work.num_tokens)
            : 0;
    for (std::int64_t done = 0; done < wanted;) {
      const std::int64_t count = std::min<std::int64_t>(wanted - done, graph_.max_logit_rows());
      std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
      for (std::int64_t i = 0; i < count; ++i)
        rows[static_cast<std::size_t>(i)] = first_row + static_cast<std::int32_t>(done + i);
      const auto logits = graph_.logits(rows);
      for (std::int64_t i = 0; i < count; ++i)
        keep_prompt_row(request, scheduler_.tokens(work.sequence), work.first_position + done + i,
                        logits.subspan(static_cast<std::size_t>(i * spec_.vocab_size),
                                       static_cast<std::size_t>(spec_.vocab_size)));
      done += count;
    }
    first_row += static_cast<std::int32_t>(work.num_tokens);
  }
}

Output PagedEngine::choose_one(RequestId id, Request& request, std::span<const float> logits) {
  Output output;
  output.request = id;
  if (!request.reported_prompt) {
    request.reported_prompt = true;
    output.cached_prompt_tokens = scheduler_.cached_prompt_tokens(id);
    output.prompt_logits = std::move(request.prompt_logits);
    output.prompt_logprobs = std::move(request.prompt_logprobs);
  }
  const auto token = request.sampler.choose(logits, request.generated);
  if (!token) {
    output.finish = FinishReason::kError;
    output.error = "the model produced no finite logit; its weights may hold NaN";
    return output;
  }
  output.tokens.push_back(*token);
  if (request.params.logprobs)
    output.logprobs.push_back(token_logprob(logits, *token, *request.params.logprobs));
  if (request.params.return_step_logits) output.logits.emplace_back(logits.begin(), logits.end());
  ++request.generated;
  const auto& stops = request.params.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), *token) != stops.end()) {
    output.finish = FinishReason::kStop;
    output.stop_token = *token;
  } else if (request.generated >= request.params.max_tokens) {
    output.finish = FinishReason::kLength;
  }
  return output;
}

void PagedEngine::choose_tokens(std::vector<Output>& outputs) {
  logit_rows_.clear();
  logit_requests_.clear();
  std::int32_t first_row = 0;
  for (const auto& work : step_.work) {
    first_row += static_cast<std::int32_t>(work.num_tokens);
    if (!work.is_last_chunk) continue;
    logit_rows_.push_back(first_row - 1);
    logit_requests_.push_back(work.sequence);
  }
  // A step may hold more sequences than the buffer has rows of logits.
  for (std::size_t done = 0; done < logit_rows_.size();) {
    const auto count = std::min(logit_rows_.size() - done, static_cast<std::size_t>(graph_.max_logit_rows()));
    const auto logits = graph_.logits(std::span(logit_rows_).subspan(done, count));
    for (std::size_t i = 0; i < count; ++i) {
      const RequestId id = logit_requests_[done + i];
      const auto vocab = static_cast<std::size_t>(spec_.vocab_size);
      Output output = choose_one(id, requests_.at(id), logits.subspan(i * vocab, vocab));
      if (output.finish) {
        scheduler_.finish(id);
        requests_.erase(id);
      } else {
        scheduler_.append(id, output.tokens.back());
      }
      outputs.push_back(std::move(output));
    }
    done += count;
  }
}

std::vector<Output> PagedEngine::step() {
  std::vector<Output> outputs;
  for (const RequestId id : finished_early_) {
    Output output;
    output.request = id;
    output.finish = FinishReason::kCancelled;
    outputs.push_back(std::move(output));
  }
  finished_early_.clear();
  scheduler_.next(step_);
  if (step_.work.empty()) return outputs;
  collect_rows();
  graph_.forward(rows_);
  scheduler_.complete(step_);
  keep_prompt_rows();
  choose_tokens(outputs);
  return outputs;
}

}  // namespace

Result<Bytes> measure_resident_kv(const model::ModelSpec& spec, ComputeMode mode, int block_size,
                                  Tokens length) {
  PLIMSOLL_TRY_VOID(memory::check_embedded(spec));
  const DType cache_dtype = memory::embedded_kv_dtype(compute_of(mode));
  const Blocks blocks((length.value + block_size - 1) / block_size);
  PLIMSOLL_TRY(const KvPool pool, KvPool::create(spec, cache_dtype, blocks, block_size));
  for (std::int64_t position = 0; position < length.value; ++position)
    pool.touch(position / block_size, position % block_size);
  return pool.resident_bytes();
}

Result<std::unique_ptr<Engine>> Engine::load(std::shared_ptr<const artifact::Artifact> artifact,
                                             const model::ModelSpec& spec, const EngineOptions& asked) {
  if (const auto broken = artifact::first_error(artifact->findings())) return fail(*broken);
  PLIMSOLL_TRY_VOID(memory::check_embedded(spec));
  const Machine machine = read_machine();
  EngineOptions options = asked;
  if (options.threads <= 0) options.threads = machine.num_cpus;
  // Maps and checks tensors; their bytes are read when they are first multiplied with.
  PLIMSOLL_TRY(ModelWeights weights, load_weights(*artifact, spec));
  memory::EmbeddedOptions sizes = memory_options(options);
  PLIMSOLL_TRY(const memory::EmbeddedPlan plan,
               memory::plan_embedded(spec, weights.stored, sizes, machine.memory_available));
  sizes.max_model_len = plan.max_model_len.value;
  PLIMSOLL_TRY(const memory::Workspace workspace, memory::embedded_workspace(spec, sizes));
  PLIMSOLL_TRY(RopeTable rope,
               make_rope_table(spec.rope, plan.max_model_len.value, weights.rope_frequencies));
  PLIMSOLL_TRY(KvPool pool, KvPool::create(spec, plan.kv_dtype, plan.num_blocks, plan.block_size));
  return std::unique_ptr<Engine>(std::make_unique<PagedEngine>(std::move(artifact), spec, options, plan,
                                                               workspace, std::move(weights), std::move(rope),
                                                               std::move(pool)));
}

}  // namespace plimsoll::engine
