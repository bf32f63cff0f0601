// SPDX-License-Identifier: Apache-2.0
// Who runs in this step, in which blocks? Scheduler, block store and prefix tree as pure data structures: no
// thread, clock, socket or weights. `engine` drives it with tensors; a simulator can drive the same code. Not
// thread-safe: one owner calls. The rules and their bounds: docs/formulas/schedule.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace plimsoll::schedule {

using TokenId = std::int32_t;
using BlockId = std::int32_t;
using SequenceId = std::uint64_t;

inline constexpr BlockId kNoBlock = -1;  // stands in a table where a block slid out of its window

/// What the layers of one cache group keep of a sequence. All groups cut their blocks from one pool, so a
/// block has the same bytes in each. A state larger than a block is as many state groups.
struct GrowingCache {};  // keys and values, or latents, of all tokens
struct WindowedCache {
  std::int64_t window = 1;  // tokens that one token reads, itself included
};
struct StateCache {};  // one block, written anew by every chunk: a recurrent state
using CacheGroup = std::variant<GrowingCache, WindowedCache, StateCache>;

struct Options {
  Blocks num_blocks;                                  // of the pool
  int block_size = 16;                                // tokens per block
  std::vector<CacheGroup> groups = {GrowingCache{}};  // each a table of a sequence; encoders have none
  int max_num_seqs = 64;                              // sequences in one step
  int max_num_batched_tokens = 512;                   // token budget of one step
  std::int64_t max_queue = 1'000'000;                 // waiting sequences beyond it are refused
  bool enable_prefix_caching = true;
  int snapshot_blocks = 1;  // a sequence's states are kept at borders at least that many blocks apart
  bool takes_whole_prompts = false;  // in one chunk each; a step has room for the longest
  bool is_static = false;            // static batching: admit only when nothing runs
};

/// Tokens whose meaning is not in their ids: the places an image or a sound takes in the prompt.
struct ForeignContent {
  std::int64_t first_position = 0;
  std::int64_t num_tokens = 0;
  std::string key;  // equal only for equal content, such as its hash
};

struct Request {
  SequenceId id = 0;
  std::vector<TokenId> prompt;
  Tokens final_tokens;         // prompt plus the most it may generate
  int priority = 0;            // lower goes first
  std::string user;            // those of equal priority take turns by the tokens they were given
  std::string cache_salt;      // prefixes are shared only between sequences with the same one,
  std::string adapter;         // and the same adaptor of the weights
  bool reads_prefixes = true;  // false: all of its prompt is computed; others may still read it
  std::vector<ForeignContent> contents;
};

/// One sequence's share of a step: compute tokens [first_position, first_position + num_tokens).
struct Work {
  SequenceId sequence = 0;
  std::int64_t first_position = 0;
  std::int64_t num_tokens = 0;
  bool is_last_chunk = false;   // the last token's logits choose a new token
  std::uint64_t admission = 0;  // in which stay of the sequence; complete() ignores work of earlier ones
};

/// Copy a whole block, in all layers of its group.
struct Copy {
  int group = 0;
  BlockId from = 0, to = 0;
};

struct Step {
  std::vector<Copy> copies;           // to be done first, in this order
  std::vector<Work> work;             // decodes first, then prefill chunks
  std::vector<SequenceId> preempted;  // lost their blocks; will be recomputed from the start
};

/// One block of tokens of a prefix, and where its content lies: what outlives a scheduler.
struct KeptPrefix {
  std::int32_t parent = -1;     // index of the block before it in the list; -1: it is the first
  std::vector<TokenId> tokens;  // [block_size]
  std::string key;              // what besides its tokens tells its content apart
  std::vector<BlockId> blocks;  // [groups], or kNoBlock
};

struct Stats {
  std::int64_t running = 0, waiting = 0, preemptions = 0;
  Blocks blocks_total, blocks_used,
      blocks_cached;                     // used: held by a sequence; cached: held by the prefix tree only
  Blocks blocks_evicted, blocks_copied;  // since the start
  std::int64_t prefix_queries_tokens = 0, prefix_hits_tokens = 0;
};

class Scheduler {
 public:
  explicit Scheduler(const Options& options);
  Scheduler(Scheduler&&) noexcept;
  Scheduler& operator=(Scheduler&&) noexcept;
  ~Scheduler();

  /// Queues a sequence.
  /// Errors: kNo when final_tokens can never fit the pool, or the queue is full; kUsage: empty prompt;
  /// kInternal: the id is in use.
  Status add(Request request);
  /// Continues `parent` a second time: the tokens it has computed, then `next` (for n > 1: after complete(),
  /// one fork for each further choice of the first token). The child shares the parent's blocks when there is
  /// a seat for it, else it waits and reads what it can from the prefix tree.
  /// Errors: kNo and kInternal as in add(); kInternal too when the parent does not run, has computed nothing,
  /// or has work planned that is not complete.
  Status fork(SequenceId parent, SequenceId child, TokenId next, Tokens final_tokens);

  /// Plans one step and takes the blocks it needs. Steps may be planned ahead of complete(), and are carried
  /// out in the order they were planned.
  Step next();
  /// The same into an old step, whose memory is used again.
  void next(Step& step);
  /// After the step's forward pass: marks its tokens as computed, so that their full blocks may serve later
  /// prompts.
  void complete(const Step& step);
  /// Appends the token that was chosen for a sequence whose work was its last chunk; at most up to
  /// final_tokens. Ids that do not run are ignored.
  void append(SequenceId sequence, TokenId token);
  /// Ends a sequence (done or cancelled) and frees its blocks at once. Unknown ids are ignored.
  void finish(SequenceId sequence);

  /// Blocks of a running sequence in one group: in the order of its positions, or the one of its state.
  std::span<const BlockId> blocks(SequenceId sequence, int group = 0) const;
  /// All its tokens so far: prompt and appended ones.
  std::span<const TokenId> tokens(SequenceId sequence) const;
  /// Prompt tokens that needed no computing when the sequence was admitted for the first time.
  std::int64_t cached_prompt_tokens(SequenceId sequence) const;

  /// What the prefix cache holds that no sequence uses: last released first, and blocks after those before
  /// them.
  std::vector<KeptPrefix> kept_prefixes() const;
  /// Takes free blocks for prefixes of another scheduler, from the first of the list on, while there are
  /// some; before any sequence is added. `blocks` become those of this pool, to be filled by the caller.
  /// Errors: kMalformed when the list does not hang together.
  Status restore(std::vector<KeptPrefix>& prefixes);

  bool has_work() const;
  Stats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace plimsoll::schedule
