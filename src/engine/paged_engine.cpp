// SPDX-License-Identifier: Apache-2.0
#include "engine/paged_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "engine/prefix_file.h"

namespace plimsoll::engine {
namespace {

schedule::Options scheduler_options(const EngineOptions& options, const memory::EmbeddedPlan& plan) {
  schedule::Options result;
  result.num_blocks = plan.num_blocks;
  result.block_size = plan.cache.block_size;
  result.groups = plan.cache.groups;
  result.max_num_seqs = options.max_num_seqs;
  result.max_num_batched_tokens = options.max_num_batched_tokens;
  result.enable_prefix_caching = options.enable_prefix_caching;
  result.takes_whole_prompts = plan.cache.groups.empty();
  result.is_static = options.batching == Batching::kStatic;
  return result;
}

}  // namespace

PagedEngine::PagedEngine(Parts parts)
    : artifact_(std::move(parts.artifact)),
      spec_(std::move(parts.spec)),
      plan_(std::move(parts.plan)),
      team_(parts.options.threads),
      pool_(std::move(parts.pool)),
      graph_(spec_, std::move(parts.weights), std::move(parts.ropes), pool_, parts.workspace, team_),
      scheduler_(scheduler_options(parts.options, plan_)),
      sampler_buffers_(static_cast<std::size_t>(team_.threads())),
      outputs_(static_cast<std::size_t>(parts.options.max_num_seqs)) {
  // The largest step has room from the start.
  rows_.reserve(static_cast<std::size_t>(parts.options.max_num_batched_tokens));
  const auto max_num_seqs = static_cast<std::size_t>(parts.options.max_num_seqs);
  tables_.reserve(max_num_seqs * plan_.cache.groups.size());
  logit_rows_.reserve(max_num_seqs);
  logit_sequences_.reserve(max_num_seqs);
  draws_.reserve(max_num_seqs);
  if (!parts.options.enable_prefix_caching || parts.options.prefix_cache_dir.empty()) return;
  prefix_folder_ = parts.options.prefix_cache_dir;
  const auto& quantization = parts.options.quantization;
  prefix_identity_ = prefix_identity(*artifact_, graph_.ropes(), plan_.cache,
                                     quantization ? memory::to_string(*quantization) : "");
  load_prefix_cache(parts.options);
}

// A file that cannot be used costs its content, not the start.
void PagedEngine::load_prefix_cache(const EngineOptions& options) {
  const auto tokens = load_prefixes(prefix_folder_, prefix_identity_, spec_.vocab_size, scheduler_, pool_);
  if (!tokens) {
    log_warning(tokens.error());
    scheduler_ = schedule::Scheduler(scheduler_options(options, plan_));  // with nothing half taken
  } else {
    log_info(fmt::format("prefix cache: {} tokens from {}", with_commas(*tokens), prefix_folder_));
  }
}

std::optional<Error> PagedEngine::cut_error() const {
  if (auto error = artifact::cut_error(*artifact_)) return error;
  return graph_.cut_error();
}

Status PagedEngine::save_prefix_cache() {
  if (prefix_folder_.empty()) return {};
  PLIMSOLL_TRY(const std::int64_t tokens, save_prefixes(prefix_folder_, prefix_identity_, scheduler_, pool_));
  log_info(fmt::format("prefix cache: {} tokens kept in {}", with_commas(tokens), prefix_folder_));
  return {};
}

MemoryReport PagedEngine::memory() const {
  MemoryReport report;
  report.weights = graph_.weight_bytes();
  report.kv_cache = pool_.bytes();
  report.num_blocks = plan_.num_blocks;
  report.block_size = pool_.block_size();
  report.kv_tokens = plan_.kv_tokens;
  report.kv_bytes_per_token = pool_.bytes_per_token();
  report.kv_cache_dtype = memory::to_string(pool_.format());
  report.max_model_len = plan_.max_model_len;
  report.max_concurrency = plan_.max_concurrency;
  report.capacity_line = memory::capacity_line(plan_);
  report.workspace = graph_.buffer_bytes();
  report.threads = team_.threads();
  return report;
}

Status PagedEngine::check_prompt(std::span<const TokenId> prompt) const {
  if (prompt.empty())
    return fail(ErrorCode::kUsage, "the prompt holds no tokens", "prompt", "give at least one token");
  for (const TokenId token : prompt)
    if (token < 0 || token >= spec_.vocab_size)
      return fail(ErrorCode::kUsage,
                  fmt::format("token id {} is outside the vocabulary of {}", token, spec_.vocab_size),
                  "prompt", "check the tokenizer");
  const std::int64_t room = plan_.max_model_len.value - std::ssize(prompt);
  if (spec_.pooling && room < 0)
    return fail(ErrorCode::kUsage,
                fmt::format("maximum context length is {} tokens; the input has {}",
                            plan_.max_model_len.value, prompt.size()),
                "prompt", "shorten the input");
  if (!spec_.pooling && room < 1)
    return fail(
        ErrorCode::kUsage,
        fmt::format(
            "maximum context length is {} tokens; the prompt has {}, which leaves no room for an answer",
            plan_.max_model_len.value, prompt.size()),
        "prompt", "shorten the prompt or raise --max-model-len");
  return {};
}

Status PagedEngine::check(const Submission& submission) const {
  if (spec_.pooling && !submission.embedding)
    return fail(ErrorCode::kUsage, "this model gives embeddings of texts and generates none", "prompt",
                "ask for an embedding, or take a model that generates text");
  if (!spec_.pooling && submission.embedding)
    return fail(ErrorCode::kUsage, "this model generates text and gives no embeddings", "prompt",
                "take an embedding model");
  if (submission.choices.empty() || (submission.embedding && submission.choices.size() > 1))
    return fail(ErrorCode::kUsage, submission.embedding ? "one embedding is given" : "no answer is asked for",
                "n", "ask for one");
  return check_prompt(submission.prompt);
}

// What the sequence keeps for whom. Returns the most tokens that any choice may have.
std::int64_t PagedEngine::settle(Submission& submission, Sequence& sequence) const {
  if (submission.embedding) {
    sequence.pooler.emplace(spec_.pooling->kind, sequence.prompt_tokens, spec_.hidden_size);
    sequence.embedding = *submission.embedding;
    return 0;
  }
  std::int64_t most_tokens = 0;
  bool wants_prompt_logits = false;
  for (SamplingParams& params : submission.choices) {
    params.max_tokens =
        std::clamp<std::int64_t>(params.max_tokens, 1, plan_.max_model_len.value - sequence.prompt_tokens);
    most_tokens = std::max(most_tokens, params.max_tokens);
    wants_prompt_logits |= params.return_prompt_logits;
    if (params.prompt_logprobs)
      sequence.num_prompt_logprobs =
          std::max(sequence.num_prompt_logprobs.value_or(0), *params.prompt_logprobs);
  }
  if (wants_prompt_logits) sequence.prompt_logits.resize(submission.prompt.size());
  if (sequence.num_prompt_logprobs) sequence.prompt_logprobs.resize(submission.prompt.size());
  sequence.on_prompt_logits = std::move(submission.on_prompt_logits);
  sequence.first_heard = submission.first_heard;
  return most_tokens;
}

Result<RequestId> PagedEngine::add(Submission submission) {
  PLIMSOLL_TRY_VOID(check(submission));
  const std::int64_t prompt_tokens = std::ssize(submission.prompt);
  Sequence sequence;
  sequence.prompt_tokens = prompt_tokens;
  const std::int64_t most_tokens = settle(submission, sequence);

  const schedule::SequenceId id = next_sequence_++;
  schedule::Request scheduled;
  scheduled.id = id;
  scheduled.prompt = submission.prompt;
  scheduled.final_tokens = Tokens(prompt_tokens + most_tokens);
  scheduled.priority = submission.priority;
  scheduled.user = std::move(submission.user);
  scheduled.cache_salt = std::move(submission.cache_salt);
  sequence.stays_within =
      graph_.ropes().within && scheduled.final_tokens.value <= spec_.rope.original_context_tokens;
  if (sequence.stays_within)
    scheduled.adapter = "short factors";  // its keys turn otherwise than those of others
  scheduled.reads_prefixes =
      !sequence.wants_prompt_rows() && !(sequence.pooler && Pooler::reads_all(spec_.pooling->kind));
  PLIMSOLL_TRY_VOID(scheduler_.add(std::move(scheduled)));

  const RequestId first = next_request_;
  for (const SamplingParams& params : submission.choices) {
    sequence.requests.push_back(next_request_);
    requests_.emplace(next_request_++, Request{params, Sampler(params, submission.prompt), id, 0});
  }
  sequences_.emplace(id, std::move(sequence));
  return first;
}

void PagedEngine::cancel(RequestId id) {
  const auto found = requests_.find(id);
  if (found == requests_.end()) return;
  const schedule::SequenceId sequence = found->second.sequence;
  requests_.erase(found);
  finished_early_.push_back(id);
  auto& left = sequences_.at(sequence).requests;
  std::erase(left, id);
  if (!left.empty()) return;  // other choices of the prompt go on
  scheduler_.finish(sequence);
  sequences_.erase(sequence);
}

void PagedEngine::collect_rows() {
  const std::size_t num_groups = plan_.cache.groups.size();
  rows_.clear();
  tables_.clear();
  tables_.resize(step_.work.size() * num_groups);
  std::size_t at = 0;
  for (const auto& work : step_.work) {
    const auto tokens = scheduler_.tokens(work.sequence);
    const bool stays_within = sequences_.at(work.sequence).stays_within;
    const std::span<std::span<const schedule::BlockId>> tables(tables_.data() + at, num_groups);
    for (std::size_t group = 0; group < num_groups; ++group)
      tables[group] = scheduler_.blocks(work.sequence, static_cast<int>(group));
    at += num_groups;
    for (std::int64_t i = 0; i < work.num_tokens; ++i) {
      const std::int64_t position = work.first_position + i;
      rows_.push_back(
          {tokens[static_cast<std::size_t>(position)], position, stays_within, std::ssize(tokens), tables});
    }
  }
}

void PagedEngine::keep_prompt_row(Sequence& sequence, std::span<const TokenId> tokens, std::int64_t position,
                                  std::span<const float> logits) {
  const auto at = static_cast<std::size_t>(position);
  if (!sequence.prompt_logits.empty()) sequence.prompt_logits[at].assign(logits.begin(), logits.end());
  // Row `position` predicts the token after it; the first prompt token is predicted by nothing.
  if (sequence.num_prompt_logprobs && position + 1 < sequence.prompt_tokens)
    sequence.prompt_logprobs[at + 1] = token_logprob(logits, tokens[at + 1], *sequence.num_prompt_logprobs);
  if (!sequence.on_prompt_logits || position < sequence.first_heard) return;
  sequence.first_heard = position + 1;
  sequence.on_prompt_logits(position, logits);
}

// Logits of prompt rows for the requests that asked for them, as many at once as the buffer holds.
void PagedEngine::keep_prompt_rows(Sequence& sequence, const schedule::Work& work, std::int32_t first_row) {
  const auto end = std::min(sequence.prompt_tokens - work.first_position, work.num_tokens);
  const auto begin = std::max<std::int64_t>(sequence.first_wanted() - work.first_position, 0);
  for (std::int64_t done = begin; done < end;) {
    const std::int64_t count = std::min<std::int64_t>(end - done, graph_.max_logit_rows());
    std::vector<std::int32_t> rows(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i)
      rows[static_cast<std::size_t>(i)] = first_row + static_cast<std::int32_t>(done + i);
    const auto logits = graph_.logits(rows);
    for (std::int64_t i = 0; i < count; ++i)
      keep_prompt_row(sequence, scheduler_.tokens(work.sequence), work.first_position + done + i,
                      logits.subspan(static_cast<std::size_t>(i * spec_.vocab_size),
                                     static_cast<std::size_t>(spec_.vocab_size)));
    done += count;
  }
}

void PagedEngine::keep_prompt_rows() {
  std::int32_t first_row = 0;
  for (const auto& work : step_.work) {
    Sequence& sequence = sequences_.at(work.sequence);
    if (sequence.wants_prompt_rows()) keep_prompt_rows(sequence, work, first_row);
    first_row += static_cast<std::int32_t>(work.num_tokens);
  }
}

void PagedEngine::report_token(Draw& draw, Output& output) const {
  Request& request = *draw.request;
  if (!draw.token) {
    output.finish = FinishReason::kError;
    output.error = "the model produced no finite logit; its weights may hold NaN";
    return;
  }
  output.tokens.push_back(*draw.token);
  if (draw.logprob) output.logprobs.push_back(std::move(*draw.logprob));
  if (request.params.return_step_logits) output.logits.emplace_back(draw.logits.begin(), draw.logits.end());
  ++request.generated;
  const auto& stops = request.params.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), *draw.token) != stops.end()) {
    output.finish = FinishReason::kStop;
    output.stop_token = *draw.token;
  } else if (request.generated >= request.params.max_tokens) {
    output.finish = FinishReason::kLength;
  }
}

// What is known of the prompt goes out with the first token.
void PagedEngine::report_prompt(const Sequence& sequence, const Request& request, Output& output) const {
  output.cached_prompt_tokens = scheduler_.cached_prompt_tokens(request.sequence);
  if (request.params.return_prompt_logits) output.prompt_logits = sequence.prompt_logits;
  if (!request.params.prompt_logprobs) return;
  output.prompt_logprobs = sequence.prompt_logprobs;
  for (auto& logprob : output.prompt_logprobs)
    if (logprob && std::ssize(logprob->top) > *request.params.prompt_logprobs)
      logprob->top.resize(static_cast<std::size_t>(*request.params.prompt_logprobs));
}

// A further choice goes on in a sequence of its own, which shares the blocks of the prompt.
Status PagedEngine::fork(schedule::SequenceId from, RequestId id, TokenId token) {
  Request& request = requests_.at(id);
  const std::int64_t prompt_tokens = sequences_.at(from).prompt_tokens;
  PLIMSOLL_TRY_VOID(
      scheduler_.fork(from, next_sequence_, token, Tokens(prompt_tokens + request.params.max_tokens)));
  request.sequence = next_sequence_++;
  sequences_.emplace(request.sequence, Sequence{.requests = {id},
                                                .prompt_tokens = prompt_tokens,
                                                .stays_within = sequences_.at(from).stays_within,
                                                .has_begun = true});
  return {};
}

// Draws of all choices that read these logits, each by whichever thread is free: none needs another's.
void PagedEngine::draw_tokens(std::span<const schedule::SequenceId> sequences,
                              std::span<const float> logits) {
  const auto vocab = static_cast<std::size_t>(spec_.vocab_size);
  draws_.clear();
  for (std::size_t i = 0; i < sequences.size(); ++i)
    for (const RequestId id : sequences_.at(sequences[i]).requests)
      draws_.push_back(
          {.id = id, .request = &requests_.at(id), .logits = logits.subspan(i * vocab, vocab), .token = {}});
  team_.run(std::ssize(draws_), [&](std::int64_t at, int thread) {
    Draw& draw = draws_[static_cast<std::size_t>(at)];
    Request& request = *draw.request;
    draw.token = request.sampler.choose(draw.logits, request.generated,
                                        sampler_buffers_[static_cast<std::size_t>(thread)]);
    if (draw.token && request.params.logprobs)
      draw.logprob = token_logprob(draw.logits, *draw.token, *request.params.logprobs);
  });
}

// Hands out the tokens of one sequence's choices: one, or all of a prompt that has just been computed.
// Returns the draws behind them.
std::span<PagedEngine::Draw> PagedEngine::hand_out(schedule::SequenceId id, std::span<Draw> draws) {
  Sequence& sequence = sequences_.at(id);
  const std::size_t count = sequence.requests.size();
  std::optional<TokenId> appended;  // by the first choice that goes on
  RequestId heir = 0;
  for (Draw& draw : draws.first(count)) {
    Output& output = outputs_.add(draw.id);
    report_token(draw, output);
    if (!sequence.has_begun) report_prompt(sequence, *draw.request, output);
    if (!output.finish && !appended) {
      appended = draw.token;
      heir = draw.id;
    } else if (!output.finish) {
      if (const auto forked = fork(id, draw.id, *draw.token); !forked) {
        output.finish = FinishReason::kError;
        output.error = forked.error().message;
      }
    }
    if (output.finish) requests_.erase(draw.id);
  }
  if (!appended) {
    scheduler_.finish(id);
    sequences_.erase(id);
    return draws.subspan(count);
  }
  scheduler_.append(id, *appended);
  if (!sequence.has_begun) sequence.begin(heir);
  return draws.subspan(count);
}

void PagedEngine::choose_tokens() {
  logit_rows_.clear();
  logit_sequences_.clear();
  std::int32_t first_row = 0;
  for (const auto& work : step_.work) {
    first_row += static_cast<std::int32_t>(work.num_tokens);
    if (!work.is_last_chunk) continue;
    logit_rows_.push_back(first_row - 1);
    logit_sequences_.push_back(work.sequence);
  }
  // A step may hold more sequences than the buffer has rows of logits.
  for (std::size_t done = 0; done < logit_rows_.size();) {
    const auto count = std::min(logit_rows_.size() - done, static_cast<std::size_t>(graph_.max_logit_rows()));
    const auto sequences = std::span(logit_sequences_).subspan(done, count);
    draw_tokens(sequences, graph_.logits(std::span(logit_rows_).subspan(done, count)));
    std::span<Draw> draws = draws_;
    for (const schedule::SequenceId id : sequences) draws = hand_out(id, draws);
    done += count;
  }
}

std::span<Output> PagedEngine::step() {
  outputs_.clear();
  for (const RequestId id : finished_early_) outputs_.add(id).finish = FinishReason::kCancelled;
  finished_early_.clear();
  scheduler_.next(step_);
  for (const schedule::Copy& copy : step_.copies) pool_.copy(copy.from, copy.to);
  if (step_.work.empty()) return outputs_.all();
  collect_rows();
  graph_.forward(rows_);
  scheduler_.complete(step_);
  if (spec_.pooling) {
    pool_rows();
    return outputs_.all();
  }
  keep_prompt_rows();
  choose_tokens();
  return outputs_.all();
}

}  // namespace plimsoll::engine
