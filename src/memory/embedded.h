// SPDX-License-Identifier: Apache-2.0
// How does this program's own engine divide the machine's memory? The engine asks here how many blocks to lay
// out and how large its buffers are, and allocates exactly that; plan asks the same and prints it.
// Pure functions: what memory is free is passed in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/embedded_cache.h"
#include "memory/engine_rules.h"
#include "model/model.h"

namespace plimsoll::memory {

/// Whether the engine computes this architecture at all, whatever the memory and however the weights are
/// stored (embedded_layouts.h).
/// Errors: kUnsupported naming what it does not do.
Status check_embedded(const model::ModelSpec& spec);

/// Values of a row that a layer's query matrix gives: its heads', and their gates'.
constexpr std::int64_t query_width(const model::Attention& attention) {
  return std::int64_t{attention.q_heads} * attention.head_dim * (attention.has_output_gate ? 2 : 1);
}

enum class EmbeddedCompute {
  kAuto,     // KV in bf16 unless a flag says otherwise; inputs of GGUF's blocks rounded to eight bits
  kFloat32,  // KV in f32, likewise; weights stay as stored and are widened row by row
};
CacheFormat embedded_cache_format(EmbeddedCompute compute, const std::optional<CacheFormat>& asked);

/// What the engine takes at most; larger values are refused before anything is sized.
inline constexpr int kMaxBlockSize = 4096;
inline constexpr int kMaxNumSeqs = 1 << 16;
inline constexpr int kMaxNumBatchedTokens = 1 << 20;
/// Longest request of a model that keeps states alone and declares no length: nothing grows with it, so any
/// length would do.
inline constexpr std::int64_t kLengthOfStates = 32'768;

struct EmbeddedOptions {
  EmbeddedCompute compute = EmbeddedCompute::kAuto;
  std::optional<CacheFormat> cache_format;    // default: as the compute mode says
  int threads = 1;                            // workers, already resolved to a number
  int block_size = 16;                        // tokens per KV block
  std::optional<std::int64_t> max_model_len;  // default: the model's context
  bool longest_model_len = false;          // take the longest that fits, up to max_model_len or the context
  std::optional<Bytes> kv_cache_bytes;     // the pool's size, instead of what is free
  std::optional<std::int64_t> num_blocks;  // the pool's blocks; goes before kv_cache_bytes
  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  std::optional<double> memory_utilization;  // share of the available memory; default: the rules' 0.92
};

/// Weight rows that a thread of the engine widens to f32 at once; the kernels' own number, which engine
/// asserts.
inline constexpr int kWidenedRows = 8;
/// The same for a panel that is opened: rows of floats that its scratch is as large as.
inline constexpr int kPanelScratchRows = 24;
/// Inputs of a matrix that share a scale in eight bits, and what they take; the kernels' own numbers
/// likewise.
inline constexpr int kInputBlock = 32, kInputBlockBytes = 40;
/// Positions that threads share a long text by; queries and positions of a tile of attention that a thread
/// holds; the kernels' own numbers likewise.
inline constexpr int kSpanPositions = 512, kTileQueries = 32, kSplitPositions = 128, kBlockPositions = 32;
/// Spans that any number of sequences can share, however short max_model_len is.
inline constexpr int kSharedSpans = 16;
/// Floats of what one query attends to in some positions, with its maximum and divisor.
constexpr std::int64_t attention_part(std::int64_t value_dim) {
  return 16 + (value_dim + 15) / 16 * 16;
}
/// Floats of a thread's buffers: widened keys or values, scores, three sets of parts.
constexpr std::int64_t attention_scratch(std::int64_t head_dim, std::int64_t value_dim) {
  return kBlockPositions * ((std::max(head_dim, value_dim) + 15) / 16 * 16) +
         kTileQueries * (kSplitPositions + 3 * attention_part(value_dim));
}
/// Sequences whose logits are computed at once; more take several passes over the output head.
inline constexpr int kLogitRows = 64;

/// What a mixer with a state computes of one row before its recurrence: parts of one buffer, in elements.
struct StateWidths {
  std::int64_t mixed = 0;      // what passes the convolution: q, k, v, or x (with B and C)
  std::int64_t gate = 0;       // of the output, which is as wide: heads x head_dim
  std::int64_t step = 0;       // time steps or decays; of a short convolution what gates its input
  std::int64_t strength = 0;   // delta nets: beta; Mamba 2: decays
  std::int64_t selection = 0;  // Mamba 1: step, B and C
  std::int64_t total() const { return mixed + gate + step + strength + selection; }
};
StateWidths state_widths(const model::State& state);

/// Tokens of the largest step: encoders compute a text whole, so that the longest one has to fit.
std::int64_t step_tokens(const model::ModelSpec& spec, int max_num_batched_tokens, std::int64_t length);

/// The engine's buffers, all f32. T = step_tokens(); widths are the largest over all layers.
struct Workspace {
  Bytes residual;       // [T, hidden]
  Bytes normed;         // [T, hidden]
  Bytes attention_out;  // [T, max(hidden, q_heads * value_dim, heads * head_dim of states)]
  Bytes down_out;       // [T, hidden]; also the output projection of attention
  Bytes query;          // [T, query_width]
  Bytes key;            // [T, kv_heads * head_dim]; of latent layers kv_lora + rope
  Bytes value;          // [T, kv_heads * value_dim]; of latent layers q_lora
  Bytes latents;        // [threads, T, kv_lora + rope + max(kv_lora, nope)]; nothing without latent layers
  Bytes states;         // [T, max(StateWidths::total(), hidden)]; nothing without states
  Bytes gate;           // [T, intermediate]; nothing without gates
  Bytes up;             // [T, intermediate]
  Bytes codes;          // [T, 2 ceil(widest matrix / 32)] blocks; nothing in float32
  Bytes rope_angles;    // [T, rotary_dim]: cosines and sines, of each of the model's ropes
  Bytes logits;         // [min(max_num_seqs, kLogitRows), vocab]; nothing for models of embeddings
  Bytes experts;        // mixtures: rows of one expert in and out [T, 2 hidden], scores [T, experts], choices
  Bytes thread_rows;    // [threads, kPanelScratchRows, widest matrix]; in float32 kWidenedRows
  Bytes attention_scratch;  // [threads, attention_scratch()]
  Bytes attention_parts;    // [max(ceil(max_model_len / kSpanPositions), kSharedSpans), q_heads,
                            // attention_part()]: of spans that threads share; nothing for one thread

  Bytes activation() const;  // the rows of T tokens
  Bytes total() const;
};

/// Buffers for these options; max_model_len defaults to the model's context, as in plan_embedded.
/// Errors: kUsage for options that make no sense; kMalformed when a size does not fit 63 bits.
/// Source: docs/formulas/embedded_engine.md, section 3.
Result<Workspace> embedded_workspace(const model::ModelSpec& spec, const EmbeddedOptions& options);

struct EmbeddedPlan {
  Bytes weights, kv_cache, workspace, process_base;
  Bytes peak;  // their sum: what the process holds when every block has been touched
  Blocks num_blocks;
  EmbeddedCache cache;  // what a block is
  Tokens kv_tokens;     // num_blocks * block_size; with several groups, or one that slides: what requests of
                        // max_model_len have in it; 0 for encoders
  Tokens max_model_len;
  double max_concurrency = 0;  // requests of max_model_len, each in whole blocks; of encoders, in one step
};

/// What the engine's start-up log says of its pool, in vLLM's words.
std::string capacity_line(const EmbeddedPlan& plan);

/// Why the pool has its size.
enum class PoolSource {
  kAvailableMemory,  // what the machine leaves
  kDemand,           // all sequences at full length need no more
  kDefaultLimit,     // the rules' limit for a pool that nobody asked to be larger
  kFlag,             // --kv-cache-memory-bytes or --num-gpu-blocks-override
};

/// The plan, or the figures of the refusal.
struct EmbeddedAnswer {
  bool fits = false;
  EmbeddedPlan plan;  // when it does not fit: the pool that there would be
  Workspace workspace;
  PoolSource pool_source = PoolSource::kAvailableMemory;
  Bytes budget;                   // share of the available memory; 0 when none was given
  Bytes available_kv_cache;       // left for the pool; may be negative
  Bytes required_kv_cache;        // one request of max_model_len in whole blocks
  std::optional<Tokens> longest;  // longest request that would fit; absent when not even one block does
  std::string message;            // why it does not fit; empty when it does

  bool holds_one_request() const { return plan.kv_cache >= required_kv_cache; }
};

/// Divides the memory; see EmbeddedAnswer for what comes back when it does not fit.
/// `stored_weights`: bytes of the tensors as stored. `available`: bytes free for this process; may be left
/// out only when the pool's size is given. Errors: kUsage, kMalformed as above; kUnsupported when a layer
/// keeps a state that this engine has not. Source: docs/formulas/embedded_engine.md.
Result<EmbeddedAnswer> size_embedded(const model::ModelSpec& spec, Bytes stored_weights,
                                     const EmbeddedOptions& options, std::optional<Bytes> available);

/// The same for the engine: a plan that fits, or an error.
/// Errors: also kNo, with the message and the longest length that fits.
Result<EmbeddedPlan> plan_embedded(const model::ModelSpec& spec, Bytes stored_weights,
                                   const EmbeddedOptions& options, std::optional<Bytes> available);

}  // namespace plimsoll::memory
