// SPDX-License-Identifier: Apache-2.0
// Who runs in this step, and in which blocks? Block manager, prefix index and scheduler as pure data
// structures: no thread, clock, socket or weights. `engine` drives it with tensors; a simulator can drive the
// same code. Not thread-safe: one owner calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace plimsoll::schedule {

using TokenId = std::int32_t;
using BlockId = std::int32_t;
using SequenceId = std::uint64_t;

struct Options {
  Blocks num_blocks;                   // of the pool
  int block_size = 16;                 // tokens per block
  int max_num_seqs = 64;               // sequences in one step
  int max_num_batched_tokens = 512;    // token budget of one step
  std::int64_t max_queue = 1'000'000;  // waiting sequences beyond it are refused
  bool enable_prefix_caching = true;
  bool is_static = false;  // static batching: admit only when nothing runs
};

/// One sequence's share of a step: compute tokens [first_position, first_position + num_tokens).
struct Work {
  SequenceId sequence = 0;
  std::int64_t first_position = 0;
  std::int64_t num_tokens = 0;
  bool is_last_chunk = false;  // the last token's logits choose a new token
};

struct Step {
  std::vector<Work> work;             // decodes first, then prefill chunks
  std::vector<SequenceId> preempted;  // lost their blocks; will be recomputed from the start
};

struct Stats {
  std::int64_t running = 0, waiting = 0, preemptions = 0;
  Blocks blocks_total, blocks_used,
      blocks_cached;  // used: held by a sequence; cached: held by the prefix index only
  std::int64_t prefix_queries_tokens = 0, prefix_hits_tokens = 0;
};

class Scheduler {
 public:
  explicit Scheduler(const Options& options);
  ~Scheduler();

  /// Queues a sequence. `final_tokens`: prompt plus the most it may generate.
  /// `priority`: lower goes first, equal ones in order of arrival. `cache_salt`: prefixes are shared only
  /// between sequences with the same one.
  /// Errors: kNo when final_tokens can never fit the pool, or the queue is full; kUsage: empty prompt;
  /// kInternal: the id is in use.
  Status add(SequenceId sequence, std::vector<TokenId> prompt, Tokens final_tokens, int priority,
             std::string cache_salt);

  /// Plans the next step: every running sequence that decodes gets one token first, prefills share what is
  /// left of the budget in chunks, waiting sequences are admitted while blocks and max_num_seqs last. Blocks
  /// are assigned here, for a whole prompt at its admission. When decodes lack blocks, the sequence admitted
  /// last (of those with the lowest priority) gives its blocks back and waits again; its tokens so far are
  /// then computed anew like a prompt. Call complete() before the next next().
  Step next();
  /// The same into a step that is used again and again, so that planning decodes allocates nothing.
  void next(Step& step);

  /// After the step's forward pass: marks its tokens as computed, so that their full blocks may serve later
  /// prompts.
  void complete(const Step& step);
  /// Appends the token that was chosen for a sequence whose work was its last chunk; at most up to
  /// final_tokens. Ids that do not run are ignored.
  void append(SequenceId sequence, TokenId token);
  /// Ends a sequence (done or cancelled) and frees its blocks at once. Unknown ids are ignored.
  void finish(SequenceId sequence);

  /// Blocks of a running sequence, in the order of its positions.
  std::span<const BlockId> blocks(SequenceId sequence) const;
  /// All its tokens so far: prompt and appended ones.
  std::span<const TokenId> tokens(SequenceId sequence) const;
  /// Prompt tokens that the prefix index supplied when the sequence was admitted for the first time.
  std::int64_t cached_prompt_tokens(SequenceId sequence) const;

  bool has_work() const;
  Stats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::schedule
