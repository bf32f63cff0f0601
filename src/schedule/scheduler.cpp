// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "schedule/block_store.h"
#include "schedule/cache_group.h"
#include "schedule/schedule.h"
#include "schedule/waiting_queue.h"

namespace plimsoll::schedule {
namespace {

struct Sequence {
  // What every step reads stands together.
  SequenceId id = 0;
  std::vector<TokenId> tokens;    // prompt, then generated
  std::int64_t num_planned = 0;   // tokens given out as work, or found in the prefix tree
  std::int64_t num_computed = 0;  // of these, completed
  std::int64_t final_tokens = 0;
  std::uint64_t admission = 0;  // rises with each admission
  bool is_running = false;
  int priority = 0;
  SequenceBlocks held;
  std::uint64_t turn = 0;  // rises with first admissions, and stays; 0: never admitted
  std::uint64_t arrival = 0;
  ContentKey key;
  bool reads_prefixes = true;
  WaitingQueue::Account* account = nullptr;
  std::int64_t cached_prompt_tokens = 0;

  std::int64_t num_tokens() const { return std::ssize(tokens); }
  std::int64_t remaining() const { return num_tokens() - num_planned; }
  Content content() const { return {tokens, key, reads_prefixes}; }
  auto rank() const { return std::tuple(priority, turn, id); }
};

}  // namespace

struct Scheduler::State {
  explicit State(const Options& o) : options(o), store(o) {}

  Sequence* running_sequence(SequenceId id) {
    const auto found = sequences.find(id);
    return found != sequences.end() && found->second.is_running ? &found->second : nullptr;
  }

  Status check_new(SequenceId id, std::int64_t most_tokens) const {
    if (sequences.contains(id))
      return fail(ErrorCode::kInternal, "sequence " + std::to_string(id) + " is known already");
    const std::int64_t needed = store.most_held(most_tokens);
    if (needed > options.num_blocks.value)
      return fail(ErrorCode::kNo,
                  "the request may grow to " + with_commas(most_tokens) + " tokens, which take " +
                      with_commas(needed) + " cache blocks of " + std::to_string(options.block_size) +
                      " tokens; the pool has " + with_commas(options.num_blocks.value),
                  {}, "shorten the prompt, ask for fewer tokens, or give the server more cache memory");
    if (options.takes_whole_prompts && most_tokens > options.max_num_batched_tokens)
      return fail(ErrorCode::kNo, "a prompt of " + with_commas(most_tokens) + " tokens does not fit a step",
                  {}, "shorten the prompt");
    if (waiting.size() >= options.max_queue)
      return fail(ErrorCode::kNo, with_commas(options.max_queue) + " requests are waiting already", {},
                  "try again later");
    return {};
  }

  void wait(Sequence& sequence) {
    if (sequence.turn == 0)
      waiting.add(sequence.account, sequence.arrival, sequence.id);
    else
      waiting.add_returning(sequence.account, sequence.turn, sequence.id);
  }

  void stop_waiting(Sequence& sequence) {
    if (sequence.turn == 0)
      waiting.remove(sequence.account, sequence.arrival);
    else
      waiting.remove_returning(sequence.account, sequence.turn, sequence.id);
  }

  // Preemption takes the rear of `running`.
  void run(Sequence& sequence) {
    sequence.is_running = true;
    sequence.admission = ++last_admission;
    const auto goes_before = [](const Sequence* a, const Sequence* b) { return a->rank() < b->rank(); };
    running.insert(std::upper_bound(running.begin(), running.end(), &sequence, goes_before), &sequence);
  }

  void preempt_last(Step& step) {
    Sequence& sequence = *running.back();
    running.pop_back();
    store.release(sequence.held);
    sequence.is_running = false;
    wait(sequence);
    step.preempted.push_back(sequence.id);
    ++preemptions;
  }

  // Blocks for the next tokens, if need be those of sequences behind this one: they have no work in this step
  // yet. The first of all gets them always, for a sequence alone fits the pool.
  bool make_room(Sequence& sequence, std::int64_t tokens, Step& step) {
    while (!store.extend(sequence.held, sequence.num_planned, tokens, step.copies)) {
      if (running.back() == &sequence) return false;
      preempt_last(step);
    }
    return true;
  }

  void plan_work(Sequence& sequence, std::int64_t tokens, std::vector<Work>& list) {
    list.push_back(
        {sequence.id, sequence.num_planned, tokens, tokens == sequence.remaining(), sequence.admission});
    sequence.num_planned += tokens;
    budget -= tokens;
  }

  std::int64_t decodes_left() const {
    return std::ranges::count_if(running, [](const Sequence* s) { return s->remaining() == 1; });
  }

  // Decodes go before prefills, but the first of all gets a token in every step: see the bound on waiting.
  // Returns false when somebody went without blocks.
  bool plan_running(Step& step) {
    const std::int64_t kept = !running.empty() && running.front()->remaining() > 1;
    std::int64_t for_decodes = budget - kept;
    std::optional<std::int64_t> for_prefills;
    bool has_room = true;
    prefills.clear();
    for (std::size_t i = 0; i < running.size(); ++i) {
      Sequence& sequence = *running[i];
      if (sequence.remaining() == 0) continue;
      const bool is_decode = sequence.remaining() == 1;
      if (!is_decode && !for_prefills) for_prefills = std::max(budget - decodes_left(), kept);
      std::int64_t& left = is_decode ? for_decodes : *for_prefills;
      std::int64_t tokens = std::min(sequence.remaining(), left);
      if (tokens <= 0) continue;
      tokens = store.chunk(sequence.num_planned, tokens, sequence.num_tokens());
      if (!make_room(sequence, tokens, step)) {
        has_room = false;
        continue;
      }
      left -= tokens;
      plan_work(sequence, tokens, is_decode ? step.work : prefills);
    }
    step.work.insert(step.work.end(), prefills.begin(), prefills.end());
    return has_room && step.preempted.empty();
  }

  bool admit(Sequence& sequence) {
    const auto found = store.admit(sequence.held, sequence.content(), sequence.final_tokens);
    if (!found) return false;
    stop_waiting(sequence);
    sequence.num_planned = sequence.num_computed = *found;
    sequence.tokens.reserve(static_cast<std::size_t>(sequence.final_tokens));
    if (sequence.turn == 0) {
      sequence.turn = ++last_turn;
      waiting.charge(sequence.account, sequence.final_tokens - *found);
      sequence.cached_prompt_tokens = *found;
      if (options.enable_prefix_caching && sequence.reads_prefixes) {
        prefix_queries_tokens += sequence.num_tokens();
        prefix_hits_tokens += *found;
      }
    }
    run(sequence);
    return true;
  }

  void admit_waiting(Step& step) {
    // A static batch is complete before it starts, even when its prompts take several steps.
    while ((budget > 0 || options.is_static) && std::cmp_less(running.size(), options.max_num_seqs)) {
      const auto head = waiting.head();
      if (!head) return;
      Sequence& sequence = sequences.at(*head);
      if (options.takes_whole_prompts && sequence.remaining() > budget) return;  // the next step has room
      if (!admit(sequence)) return;  // nobody overtakes: else a long prompt could wait for ever
      if (budget == 0) continue;
      const std::int64_t tokens =
          store.chunk(sequence.num_planned, std::min(budget, sequence.remaining()), sequence.num_tokens());
      const bool has_room = store.extend(sequence.held, sequence.num_planned, tokens, step.copies);
      PLIMSOLL_CHECK(has_room, "admission saw room for the first chunk");
      plan_work(sequence, tokens, step.work);
    }
  }

  Options options;
  BlockStore store;
  WaitingQueue waiting;
  std::unordered_map<SequenceId, Sequence> sequences;
  std::vector<Sequence*> running;  // by rank
  std::vector<Work> prefills;      // of the step being planned
  std::int64_t budget = 0;         // tokens left in it
  std::uint64_t last_arrival = 0, last_turn = 0, last_admission = 0;
  std::int64_t preemptions = 0, prefix_queries_tokens = 0, prefix_hits_tokens = 0;
};

Scheduler::Scheduler(const Options& options) {
  PLIMSOLL_CHECK(options.block_size > 0 && options.max_num_seqs > 0 && options.max_num_batched_tokens > 0,
                 "sizes of the schedule are positive; flags are checked where they are read");
  PLIMSOLL_CHECK(options.num_blocks.value >= 0 && options.num_blocks.value <= INT32_MAX,
                 "block numbers are 32-bit");
  PLIMSOLL_CHECK(options.snapshot_blocks > 0, "snapshots have a distance");
  PLIMSOLL_CHECK(!options.groups.empty() || !options.enable_prefix_caching,
                 "a model that keeps nothing has no prefixes to find");
  state_ = std::make_unique<State>(options);
}

Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler& Scheduler::operator=(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

Status Scheduler::add(Request request) {
  State& state = *state_;
  if (request.prompt.empty()) return fail(ErrorCode::kUsage, "a sequence needs at least one prompt token");
  const std::int64_t most_tokens = std::max(std::ssize(request.prompt), request.final_tokens.value);
  PLIMSOLL_TRY_VOID(state.check_new(request.id, most_tokens));
  Sequence& added = state.sequences[request.id];
  added.id = request.id;
  added.tokens = std::move(request.prompt);
  added.final_tokens = most_tokens;
  added.priority = request.priority;
  added.arrival = ++state.last_arrival;
  added.key = ContentKey(request.cache_salt, request.adapter, std::move(request.contents));
  added.reads_prefixes = request.reads_prefixes;
  added.account = state.waiting.join(request.priority, request.user);
  state.wait(added);
  return {};
}

Status Scheduler::fork(SequenceId parent, SequenceId child, TokenId next, Tokens final_tokens) {
  State& state = *state_;
  Sequence* const from = state.running_sequence(parent);
  if (!from || from->num_computed == 0 || from->num_planned != from->num_computed)
    return fail(ErrorCode::kInternal, "sequence " + std::to_string(parent) +
                                          " cannot be forked: it has to run, with all work complete");
  const std::int64_t num_shared = from->num_computed;
  const std::int64_t most_tokens = std::max(num_shared + 1, final_tokens.value);
  PLIMSOLL_TRY_VOID(state.check_new(child, most_tokens));
  Sequence& added = state.sequences[child];
  added.id = child;
  added.tokens.reserve(static_cast<std::size_t>(most_tokens));
  added.tokens.assign(from->tokens.begin(), from->tokens.begin() + num_shared);
  added.tokens.push_back(next);
  added.final_tokens = most_tokens;
  added.priority = from->priority;
  added.arrival = ++state.last_arrival;
  added.key = from->key;
  added.account = state.waiting.join(from->priority, from->account->user);
  added.turn = from->turn;  // it goes where its parent goes
  if (std::cmp_less(state.running.size(), state.options.max_num_seqs)) {
    added.held = state.store.share(from->held, num_shared, most_tokens);
    added.num_planned = added.num_computed = added.cached_prompt_tokens = num_shared;
    state.run(added);
  } else {
    state.wait(added);
  }
  state.waiting.charge(added.account, added.final_tokens - added.num_planned);
  return {};
}

Step Scheduler::next() {
  Step step;
  next(step);
  return step;
}

void Scheduler::next(Step& step) {
  State& state = *state_;
  step.copies.clear();
  step.work.clear();
  step.preempted.clear();
  state.budget = state.options.max_num_batched_tokens;
  const bool may_admit = !state.options.is_static || state.running.empty();
  // Blocks that a preemption just freed, or that somebody lacks, belong to those who run.
  const bool has_room = state.plan_running(step);
  if (may_admit && has_room) state.admit_waiting(step);
}

void Scheduler::complete(const Step& step) {
  for (const Work& work : step.work) {
    Sequence* const sequence = state_->running_sequence(work.sequence);
    if (!sequence || sequence->admission != work.admission) continue;  // ended or preempted meanwhile
    PLIMSOLL_CHECK(sequence->num_computed == work.first_position, "steps are completed in order, once each");
    sequence->num_computed += work.num_tokens;
    state_->store.computed(sequence->held, sequence->content(), sequence->num_computed,
                           sequence->num_planned == sequence->num_computed);
  }
}

void Scheduler::append(SequenceId sequence, TokenId token) {
  Sequence* const found = state_->running_sequence(sequence);
  if (!found) return;
  PLIMSOLL_CHECK(found->num_tokens() < found->final_tokens, "a sequence keeps to its announced length");
  found->tokens.push_back(token);
}

void Scheduler::finish(SequenceId sequence) {
  State& state = *state_;
  const auto found = state.sequences.find(sequence);
  if (found == state.sequences.end()) return;
  Sequence& ended = found->second;
  if (ended.is_running) {
    state.store.release(ended.held);
    state.running.erase(std::find(state.running.begin(), state.running.end(), &ended));
  } else {
    state.stop_waiting(ended);
  }
  state.waiting.leave(ended.account, ended.turn > 0 ? ended.final_tokens - ended.num_tokens() : 0);
  state.sequences.erase(found);
}

std::span<const BlockId> Scheduler::blocks(SequenceId sequence, int group) const {
  const auto found = state_->sequences.find(sequence);
  if (found == state_->sequences.end() || !found->second.is_running) return {};
  return found->second.held.tables[static_cast<std::size_t>(group)].blocks;
}

std::span<const TokenId> Scheduler::tokens(SequenceId sequence) const {
  const auto found = state_->sequences.find(sequence);
  return found == state_->sequences.end() ? std::span<const TokenId>() : found->second.tokens;
}

std::int64_t Scheduler::cached_prompt_tokens(SequenceId sequence) const {
  const auto found = state_->sequences.find(sequence);
  return found == state_->sequences.end() ? 0 : found->second.cached_prompt_tokens;
}

std::vector<KeptPrefix> Scheduler::kept_prefixes() const {
  return state_->store.kept();
}

Status Scheduler::restore(std::vector<KeptPrefix>& prefixes) {
  PLIMSOLL_CHECK(state_->sequences.empty(), "prefixes are restored before any sequence is added");
  return state_->store.restore(prefixes);
}

bool Scheduler::has_work() const {
  return !state_->sequences.empty();
}

Stats Scheduler::stats() const {
  Stats stats;
  const BlockManager& pool = state_->store.pool();
  stats.running = std::ssize(state_->running);
  stats.waiting = state_->waiting.size();
  stats.preemptions = state_->preemptions;
  stats.blocks_total = pool.total();
  stats.blocks_used = pool.num_used();
  stats.blocks_cached = pool.num_cached();
  stats.blocks_evicted = Blocks(state_->store.num_evicted());
  stats.blocks_copied = Blocks(state_->store.num_copied());
  stats.prefix_queries_tokens = state_->prefix_queries_tokens;
  stats.prefix_hits_tokens = state_->prefix_hits_tokens;
  return stats;
}

}  // namespace plimsoll::schedule
