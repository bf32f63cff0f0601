// SPDX-License-Identifier: Apache-2.0
// The engine over a paged pool: carries out what the scheduler plans. Each step copies blocks, computes rows,
// chooses tokens. Several choices of one prompt share its computing: their sequence is forked when the first
// tokens are chosen. One thread calls.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/thread_pool.h"
#include "engine/engine.h"
#include "engine/graph.h"
#include "engine/kv_pool.h"
#include "engine/outputs.h"
#include "engine/pooler.h"
#include "engine/sampler.h"
#include "memory/embedded.h"
#include "schedule/schedule.h"

namespace plimsoll::engine {

class PagedEngine final : public Engine {
 public:
  /// What load() put together.
  struct Parts {
    std::shared_ptr<const artifact::Artifact> artifact;
    model::ModelSpec spec;
    EngineOptions options;
    memory::EmbeddedPlan plan;
    memory::Workspace workspace;
    ModelWeights weights;
    RopeTables ropes;
    KvPool pool;
  };
  explicit PagedEngine(Parts parts);

  MemoryReport memory() const override;
  EngineStats stats() const override { return scheduler_.stats(); }
  std::int64_t vocab_size() const override { return spec_.vocab_size; }
  bool has_work() const override { return scheduler_.has_work() || !finished_early_.empty(); }
  Bytes resident_kv_bytes() const override { return pool_.resident_bytes(); }
  std::optional<Error> cut_error() const override;
  Status save_prefix_cache() override;

  Result<RequestId> add(Submission submission) override;
  void cancel(RequestId request) override;
  std::span<Output> step() override;

 private:
  /// One choice from add() to its last output.
  struct Request {
    SamplingParams params;
    Sampler sampler;
    schedule::SequenceId sequence = 0;
    std::int64_t generated = 0;
  };
  /// One sequence of the scheduler, and whom its tokens are for.
  struct Sequence {
    std::vector<RequestId> requests;  // until the first tokens are chosen, all choices; then one
    std::int64_t prompt_tokens = 0;
    bool stays_within = false;  // Row::stays_within
    bool has_begun = false;     // first tokens, prompt logits and logprobs were handed out
    std::vector<std::vector<float>> prompt_logits = {};             // [prompt tokens][vocab], when asked
    std::vector<std::optional<TokenLogprob>> prompt_logprobs = {};  // [prompt tokens], when asked
    std::optional<int> num_prompt_logprobs = {};                    // the most that a choice asked for
    decltype(Submission::on_prompt_logits) on_prompt_logits = {};
    std::int64_t first_heard = 0;
    std::optional<Pooler> pooler = {};  // of an embedding, which ends the sequence
    EmbeddingParams embedding = {};
    /// The first token is out: nothing is kept for the prompt any more, and one choice goes on here.
    void begin(RequestId heir) {
      has_begun = true;
      requests.front() = heir;
      requests.resize(1);
      prompt_logits = {};
      prompt_logprobs = {};
      num_prompt_logprobs.reset();
      on_prompt_logits = {};
    }
    bool keeps_prompt_rows() const { return !prompt_logits.empty() || num_prompt_logprobs; }
    /// A preempted sequence computes its prompt again; its rows were handed out with its first token.
    bool wants_prompt_rows() const { return !has_begun && (keeps_prompt_rows() || on_prompt_logits); }
    /// The first prompt token whose row is wanted. Moves on as rows are heard: none is heard twice.
    std::int64_t first_wanted() const { return keeps_prompt_rows() ? 0 : first_heard; }
  };

  /// One choice of a token in a step.
  struct Draw {
    RequestId id = 0;
    Request* request = nullptr;
    std::span<const float> logits;  // [vocab]
    std::optional<TokenId> token;   // nothing: no logit is finite
    std::optional<TokenLogprob> logprob = {};
  };

  void load_prefix_cache(const EngineOptions& options);
  Status check(const Submission& submission) const;
  Status check_prompt(std::span<const TokenId> prompt) const;
  std::int64_t settle(Submission& submission, Sequence& sequence) const;
  void collect_rows();
  void keep_prompt_rows();
  void keep_prompt_rows(Sequence& sequence, const schedule::Work& work, std::int32_t first_row);
  void keep_prompt_row(Sequence& sequence, std::span<const TokenId> tokens, std::int64_t position,
                       std::span<const float> logits);
  void pool_rows();
  void end_with_embedding(schedule::SequenceId id);
  void choose_tokens();
  void draw_tokens(std::span<const schedule::SequenceId> sequences, std::span<const float> logits);
  std::span<Draw> hand_out(schedule::SequenceId id, std::span<Draw> draws);
  void report_token(Draw& draw, Output& output) const;
  void report_prompt(const Sequence& sequence, const Request& request, Output& output) const;
  Status fork(schedule::SequenceId from, RequestId id, TokenId token);

  std::shared_ptr<const artifact::Artifact> artifact_;
  model::ModelSpec spec_;
  memory::EmbeddedPlan plan_;
  ThreadPool team_;
  KvPool pool_;
  Graph graph_;
  schedule::Scheduler scheduler_;
  std::unordered_map<RequestId, Request> requests_;
  std::unordered_map<schedule::SequenceId, Sequence> sequences_;
  std::vector<RequestId> finished_early_;  // cancelled since the last step
  schedule::Step step_;
  std::vector<Row> rows_;
  std::vector<SamplerBuffers> sampler_buffers_;  // [threads]
  std::vector<Draw> draws_;                      // of one call of graph_.logits()
  Outputs outputs_;
  std::vector<std::span<const schedule::BlockId>> tables_;  // [sequences of step_, groups]
  std::vector<std::int32_t> logit_rows_;                    // of step_: rows whose logits choose a token,
  std::vector<schedule::SequenceId> logit_sequences_;       // and of which sequences they are
  std::string prefix_folder_, prefix_identity_;             // empty: nothing is kept
  RequestId next_request_ = 1;
  schedule::SequenceId next_sequence_ = 1;
};

}  // namespace plimsoll::engine
