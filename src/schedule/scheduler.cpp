// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "schedule/block_manager.h"
#include "schedule/prefix_index.h"
#include "schedule/schedule.h"

namespace plimsoll::schedule {
namespace {

struct Sequence {
  SequenceId id = 0;
  std::vector<TokenId> tokens;  // prompt, then generated
  std::int64_t num_prompt_tokens = 0;
  std::int64_t final_tokens = 0;
  int priority = 0;
  std::uint64_t arrival = 0;
  std::string salt;

  bool is_running = false;
  bool was_admitted = false;
  std::uint64_t admission = 0;  // rises with each admission
  std::vector<BlockId> blocks;
  std::int64_t num_planned = 0;   // tokens given out as work, or found in the index
  std::int64_t num_computed = 0;  // of these, completed
  std::int64_t num_indexed = 0;   // leading blocks that went through the prefix index
  PrefixId last_prefix = kNoPrefix;
  std::int64_t cached_prompt_tokens = 0;

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(tokens.size()); }
  std::int64_t remaining() const { return num_tokens() - num_planned; }
};

std::int64_t blocks_for(std::int64_t tokens, int block_size) {
  return tokens / block_size + (tokens % block_size != 0);
}

}  // namespace

struct Scheduler::State {
  explicit State(const Options& o) : options(o), pool(o.num_blocks), index(o.num_blocks, o.block_size) {}

  using WaitingKey = std::tuple<int, std::uint64_t, SequenceId>;  // priority, arrival
  static WaitingKey key_of(const Sequence& sequence) {
    return {sequence.priority, sequence.arrival, sequence.id};
  }

  Sequence* running_sequence(SequenceId id) {
    const auto found = sequences.find(id);
    return found != sequences.end() && found->second.is_running ? &found->second : nullptr;
  }

  std::span<const TokenId> block_tokens(const Sequence& sequence, std::int64_t block) const {
    return std::span(sequence.tokens)
        .subspan(static_cast<std::size_t>(block * options.block_size),
                 static_cast<std::size_t>(options.block_size));
  }

  BlockId take_block() {
    const auto taken = pool.take();
    PLIMSOLL_CHECK(taken.has_value(), "the caller counted the available blocks");
    if (taken->was_cached) index.forget(taken->block);
    return taken->block;
  }

  // Last block first: of two cached blocks of a chain the rear one is evicted first, for it is worth nothing
  // without the one before it.
  void release_blocks(Sequence& sequence) {
    for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block)
      pool.release(*block);
    sequence.blocks.clear();
  }

  void preempt(Sequence& sequence, Step& step) {
    release_blocks(sequence);
    running.erase(std::find(running.begin(), running.end(), &sequence));
    sequence.is_running = false;
    sequence.num_planned = sequence.num_computed = sequence.num_indexed = 0;
    sequence.last_prefix = kNoPrefix;
    waiting.insert(key_of(sequence));
    step.preempted.push_back(sequence.id);
    ++preemptions;
  }

  void plan_work(Sequence& sequence, std::int64_t tokens, Step& step) {
    Work work{sequence.id, sequence.num_planned, tokens, tokens == sequence.remaining()};
    sequence.num_planned += tokens;
    budget -= tokens;
    step.work.push_back(work);
  }

  // True when the sequence has a place for its next token; else it was preempted itself.
  bool make_room(Sequence& sequence, Step& step) {
    const auto needed = blocks_for(sequence.num_planned + 1, options.block_size);
    while (std::cmp_less(sequence.blocks.size(), needed)) {
      if (pool.num_available().value > 0) {
        sequence.blocks.push_back(take_block());
        continue;
      }
      Sequence* const victim = running.back();
      preempt(*victim, step);
      if (victim == &sequence) return false;
    }
    return true;
  }

  // Decodes go in the order of `running`, whose rear is what make_room() preempts: a sequence that has work
  // in this step already stands before the one that asks, so it never loses its blocks in the same step.
  void plan_decodes(Step& step) {
    for (std::size_t i = 0; i < running.size() && budget > 0; ++i) {
      Sequence& sequence = *running[i];
      if (sequence.remaining() == 1 && make_room(sequence, step)) plan_work(sequence, 1, step);
    }
  }

  void plan_prefills(Step& step) {
    for (Sequence* sequence : running)
      if (budget > 0 && sequence->remaining() > 0) {
        // Only decodes grow; a prompt got all its blocks at admission.
        PLIMSOLL_DCHECK(std::cmp_greater_equal(sequence->blocks.size(),
                                               blocks_for(sequence->num_tokens(), options.block_size)),
                        "a prompt has its blocks");
        plan_work(*sequence, std::min(budget, sequence->remaining()), step);
      }
  }

  // Whole blocks of the sequence that the index can supply. The last token is always computed: its logits
  // choose the next one.
  std::vector<PrefixIndex::Found> find_prefix(const Sequence& sequence) const {
    std::vector<PrefixIndex::Found> found;
    if (!options.enable_prefix_caching) return found;
    const std::int64_t most = (sequence.num_tokens() - 1) / options.block_size;
    while (std::cmp_less(found.size(), most)) {
      const auto next = index.find(found.empty() ? kNoPrefix : found.back().prefix, sequence.salt,
                                   block_tokens(sequence, static_cast<std::int64_t>(found.size())));
      if (!next) break;
      found.push_back(*next);
    }
    return found;
  }

  // All blocks of the tokens so far, or nothing.
  bool admit(Sequence& sequence) {
    const auto prefix = find_prefix(sequence);
    const auto num_unheld = std::count_if(prefix.begin(), prefix.end(),
                                          [this](const auto& f) { return pool.references(f.block) == 0; });
    const auto needed = blocks_for(sequence.num_tokens(), options.block_size);
    const auto num_new = needed - static_cast<std::int64_t>(prefix.size());
    if (num_new > pool.num_available().value - num_unheld) return false;

    for (const auto& found : prefix) {
      pool.hold(found.block);
      sequence.blocks.push_back(found.block);
    }
    for (std::int64_t i = 0; i < num_new; ++i) sequence.blocks.push_back(take_block());
    sequence.num_indexed = static_cast<std::int64_t>(prefix.size());
    sequence.num_planned = sequence.num_computed = sequence.num_indexed * options.block_size;
    sequence.last_prefix = prefix.empty() ? kNoPrefix : prefix.back().prefix;
    // Steps of a running sequence allocate nothing: what it may need is there from its admission.
    sequence.tokens.reserve(static_cast<std::size_t>(sequence.final_tokens));
    sequence.blocks.reserve(static_cast<std::size_t>(blocks_for(sequence.final_tokens, options.block_size)));
    sequence.is_running = true;
    sequence.admission = ++last_admission;
    if (!sequence.was_admitted) {
      sequence.was_admitted = true;
      sequence.cached_prompt_tokens = sequence.num_planned;
      if (options.enable_prefix_caching) {
        prefix_queries_tokens += sequence.num_tokens();
        prefix_hits_tokens += sequence.num_planned;
      }
    }
    const auto is_before = [](const Sequence* a, const Sequence* b) {
      return std::pair(a->priority, a->admission) < std::pair(b->priority, b->admission);
    };
    running.insert(std::upper_bound(running.begin(), running.end(), &sequence, is_before), &sequence);
    return true;
  }

  void admit_waiting(Step& step) {
    // A static batch is complete before it starts, even when its prompts take several steps.
    while ((budget > 0 || options.is_static) && !waiting.empty() &&
           std::cmp_less(running.size(), options.max_num_seqs)) {
      Sequence& sequence = sequences.at(std::get<2>(*waiting.begin()));
      if (!admit(sequence)) return;  // nobody overtakes: else a long prompt could wait for ever
      waiting.erase(waiting.begin());
      if (budget > 0) plan_work(sequence, std::min(budget, sequence.remaining()), step);
    }
  }

  void index_full_blocks(Sequence& sequence) {
    while ((sequence.num_indexed + 1) * options.block_size <= sequence.num_computed) {
      const BlockId block = sequence.blocks[static_cast<std::size_t>(sequence.num_indexed)];
      const auto added =
          index.add(sequence.last_prefix, sequence.salt, block_tokens(sequence, sequence.num_indexed), block);
      if (added.is_new) pool.mark_cached(block);
      sequence.last_prefix = added.prefix;
      ++sequence.num_indexed;
    }
  }

  Options options;
  BlockManager pool;
  PrefixIndex index;
  std::unordered_map<SequenceId, Sequence> sequences;
  std::set<WaitingKey> waiting;
  std::vector<Sequence*> running;  // by priority, then admission
  std::int64_t budget = 0;         // tokens left in the step being planned
  std::uint64_t last_arrival = 0, last_admission = 0;
  std::int64_t preemptions = 0, prefix_queries_tokens = 0, prefix_hits_tokens = 0;
};

Scheduler::Scheduler(const Options& options) {
  PLIMSOLL_CHECK(options.block_size > 0 && options.max_num_seqs > 0 && options.max_num_batched_tokens > 0,
                 "sizes of the schedule are positive; flags are checked where they are read");
  PLIMSOLL_CHECK(options.num_blocks.value >= 0 && options.num_blocks.value <= INT32_MAX,
                 "block numbers are 32-bit");
  state_ = std::make_unique<State>(options);
}

Scheduler::~Scheduler() = default;

Status Scheduler::add(SequenceId sequence, std::vector<TokenId> prompt, Tokens final_tokens, int priority,
                      std::string cache_salt) {
  const auto num_prompt_tokens = static_cast<std::int64_t>(prompt.size());
  const Options& options = state_->options;
  if (prompt.empty()) return fail(ErrorCode::kUsage, "a sequence needs at least one prompt token");
  if (state_->sequences.contains(sequence))
    return fail(ErrorCode::kInternal, "sequence " + std::to_string(sequence) + " is known already");
  const auto most_tokens = std::max(num_prompt_tokens, final_tokens.value);
  const auto needed = blocks_for(most_tokens, options.block_size);
  if (needed > options.num_blocks.value)
    return fail(ErrorCode::kNo,
                "the request may grow to " + with_commas(most_tokens) + " tokens, which take " +
                    with_commas(needed) + " cache blocks of " + std::to_string(options.block_size) +
                    " tokens; the pool has " + with_commas(options.num_blocks.value),
                {}, "shorten the prompt, ask for fewer tokens, or give the server more cache memory");
  if (std::cmp_greater_equal(state_->waiting.size(), options.max_queue))
    return fail(ErrorCode::kNo, with_commas(options.max_queue) + " requests are waiting already", {},
                "try again later");

  Sequence added;
  added.id = sequence;
  added.tokens = std::move(prompt);
  added.num_prompt_tokens = num_prompt_tokens;
  added.final_tokens = most_tokens;
  added.priority = priority;
  added.arrival = ++state_->last_arrival;
  added.salt = std::move(cache_salt);
  state_->waiting.insert(State::key_of(added));
  state_->sequences.emplace(sequence, std::move(added));
  return {};
}

Step Scheduler::next() {
  Step step;
  next(step);
  return step;
}

void Scheduler::next(Step& step) {
  State& state = *state_;
  step.work.clear();
  step.preempted.clear();
  state.budget = state.options.max_num_batched_tokens;
  const bool may_admit = !state.options.is_static || state.running.empty();
  state.plan_decodes(step);
  state.plan_prefills(step);
  // Blocks that a preemption just freed belong to those who still run.
  if (may_admit && step.preempted.empty()) state.admit_waiting(step);
}

void Scheduler::complete(const Step& step) {
  for (const Work& work : step.work) {
    Sequence* const sequence = state_->running_sequence(work.sequence);
    if (!sequence || sequence->num_computed != work.first_position) continue;  // ended meanwhile
    sequence->num_computed += work.num_tokens;
    if (state_->options.enable_prefix_caching) state_->index_full_blocks(*sequence);
  }
}

void Scheduler::append(SequenceId sequence, TokenId token) {
  Sequence* const found = state_->running_sequence(sequence);
  if (!found) return;
  PLIMSOLL_CHECK(found->num_tokens() < found->final_tokens, "a sequence keeps to its announced length");
  found->tokens.push_back(token);
}

void Scheduler::finish(SequenceId sequence) {
  const auto found = state_->sequences.find(sequence);
  if (found == state_->sequences.end()) return;
  Sequence& ended = found->second;
  if (ended.is_running) {
    state_->release_blocks(ended);
    state_->running.erase(std::find(state_->running.begin(), state_->running.end(), &ended));
  } else {
    state_->waiting.erase(State::key_of(ended));
  }
  state_->sequences.erase(found);
}

std::span<const BlockId> Scheduler::blocks(SequenceId sequence) const {
  const auto found = state_->sequences.find(sequence);
  return found == state_->sequences.end() ? std::span<const BlockId>() : found->second.blocks;
}

std::span<const TokenId> Scheduler::tokens(SequenceId sequence) const {
  const auto found = state_->sequences.find(sequence);
  return found == state_->sequences.end() ? std::span<const TokenId>() : found->second.tokens;
}

std::int64_t Scheduler::cached_prompt_tokens(SequenceId sequence) const {
  const auto found = state_->sequences.find(sequence);
  return found == state_->sequences.end() ? 0 : found->second.cached_prompt_tokens;
}

bool Scheduler::has_work() const {
  return !state_->sequences.empty();
}

Stats Scheduler::stats() const {
  Stats stats;
  stats.running = static_cast<std::int64_t>(state_->running.size());
  stats.waiting = static_cast<std::int64_t>(state_->waiting.size());
  stats.preemptions = state_->preemptions;
  stats.blocks_total = state_->pool.total();
  stats.blocks_used = state_->pool.num_used();
  stats.blocks_cached = state_->pool.num_cached();
  stats.prefix_queries_tokens = state_->prefix_queries_tokens;
  stats.prefix_hits_tokens = state_->prefix_hits_tokens;
  return stats;
}

}  // namespace plimsoll::schedule
