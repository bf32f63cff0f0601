// SPDX-License-Identifier: Apache-2.0
// Which tokens come next, for whom? The transformer graph over a paged KV pool, stepped by the scheduler.
// The engine speaks token ids only. One thread calls it (serve gives it a thread of its own); inside it uses
// a pool of `threads` workers. It owns the KV pool and keeps the artifact alive for its mapped weights.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/json.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/cache_format.h"
#include "memory/weights.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace plimsoll::engine {

using TokenId = std::int32_t;
using RequestId = std::uint64_t;

enum class ComputeMode {
  kAuto,
  kFloat32
};  // kFloat32: f32 activations and KV, the mode of the reference tolerance
enum class Batching { kContinuous, kStatic };

struct EngineOptions {
  ComputeMode mode = ComputeMode::kAuto;
  std::optional<memory::CacheFormat> cache_format;   // of keys, values and latents; default: as the mode says
  std::optional<memory::WeightFormat> quantization;  // of linear layers at load: int8 or int4
  int threads = 0;                                   // 0: as read_cores() finds
  int block_size = 16;                               // tokens per KV block
  std::optional<std::int64_t> max_model_len;         // default: the model's context
  std::optional<Bytes> kv_cache_bytes;               // default: from free memory, see memory room
  std::optional<std::int64_t> num_blocks;            // overrides kv_cache_bytes
  int max_num_seqs = 64;
  int max_num_batched_tokens = 512;
  std::optional<double> memory_utilization;  // share of the available memory for all of it; default 0.92
  bool enable_prefix_caching = true;
  std::string prefix_cache_dir;  // folder in which the prefix cache outlives the process; empty: it does not
  std::string packed_cache_dir;  // folder in which arranged weights outlive the process; empty: they do not
  Batching batching = Batching::kContinuous;
  std::function<void(std::string_view)> on_progress = [](std::string_view) {};  // of a long load
};

struct SamplingParams {
  std::int64_t max_tokens = 16;
  std::int64_t min_tokens = 0;
  double temperature = 1.0;  // 0: greedy
  double top_p = 1.0;
  int top_k = 0;  // 0 or -1: all
  double min_p = 0.0;
  double typical_p = 1.0;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  double repetition_penalty = 1.0;
  std::optional<std::uint64_t> seed;
  std::vector<TokenId> stop_token_ids;    // end the sequence; the caller adds the tokenizer's stop ids
  std::vector<TokenId> ignored_stop_ids;  // end nothing, and are not chosen before min_tokens either
  std::vector<std::pair<TokenId, double>> logit_bias;
  std::optional<int> logprobs;  // top N of each generated token (0: its own only)
  std::optional<int> prompt_logprobs;
  bool return_step_logits = false;  // raw logits of every generated token
  bool return_prompt_logits = false;
};

struct TokenLogprob {
  TokenId token = 0;
  double logprob = 0.0;
  std::vector<std::pair<TokenId, double>> top;  // most likely first
  std::int64_t rank = 0;                        // how many logits are at least its own: 1 for the likeliest
};

enum class FinishReason { kStop, kLength, kCancelled, kError };
std::string_view to_string(FinishReason reason);  // stop length abort error

/// What is wanted of the embedding of a prompt.
struct EmbeddingParams {
  std::int64_t dimensions = 0;  // so many leading ones; 0: all
  bool is_normalized = true;    // to a length of 1
};

/// One prompt and what is wanted of it.
struct Submission {
  std::vector<TokenId> prompt;
  std::optional<EmbeddingParams> embedding =
      {};                               // instead of answers: `choices` holds one, which is not read
  std::vector<SamplingParams> choices;  // one answer each; the prompt is computed once for all
  int priority = 0;                     // lower runs earlier
  std::string user;                     // those of equal priority take turns
  std::string cache_salt;               // prefixes are reused only among requests with the same one
  /// Hears the raw logits behind each prompt token from position `first_heard` on, in order and once, within
  /// step(); the engine keeps none of them. row: [vocab], valid during the call.
  std::function<void(std::int64_t position, std::span<const float> row)> on_prompt_logits = {};
  std::int64_t first_heard = 0;
};

/// What one step brought for one request.
struct Output {
  RequestId request = 0;
  std::vector<TokenId> tokens;                               // new tokens, in order; a stop token is included
  std::vector<TokenLogprob> logprobs;                        // one per new token when asked
  std::vector<std::vector<float>> logits;                    // raw [vocab] per new token when asked
  std::vector<std::vector<float>> prompt_logits;             // [prompt tokens][vocab], once, when asked
  std::vector<std::optional<TokenLogprob>> prompt_logprobs;  // once, when asked; the first entry is empty
  std::vector<float> embedding;                              // once, when asked, with finish kStop
  std::optional<FinishReason> finish;
  std::optional<TokenId> stop_token;      // the token that ended it, when kStop
  std::int64_t cached_prompt_tokens = 0;  // of the prompt, found in the prefix cache; with the first token
  std::string error;                      // kError: why
};

/// Exact sizes of a loaded engine; the numbers of the start-up line.
struct MemoryReport {
  Bytes weights;   // stored bytes of the tensors in use (buffers included)
  Bytes kv_cache;  // the pool
  Bytes kv_bytes_per_token;
  std::string kv_cache_dtype;  // bf16 f32 fp8 int8
  Blocks num_blocks;
  int block_size = 0;
  Tokens kv_tokens;  // see memory::EmbeddedPlan
  Bytes workspace;   // activation, logits and scratch buffers, as allocated
  Tokens max_model_len;
  double max_concurrency = 0;  // requests of max_model_len, each in whole blocks
  std::string capacity_line;   // the sentence of the start-up log
  int threads = 1;             // that compute
};

/// Queue, blocks and prefix cache, as the scheduler counts them.
using EngineStats = schedule::Stats;

/// What layers of one kind hold of a sequence.
struct ResidentKv {
  std::string_view kind;                      // model::kind_of
  std::optional<std::int64_t> window_tokens;  // of a window or chunk; nothing: all tokens, or a state
  Bytes bytes = {};
};

/// Bytes that become resident in a pool of its own when keys and values of `length` tokens are written where
/// a sequence of that length has them, kind by kind: read from the page tables (mincore), not computed. No
/// weights are needed. `options.block_size` is the most tokens per block; a smaller one is taken so that no
/// part of a block is counted that the sequence does not fill. Errors: those of the layout (lay_out_cache,
/// KvPool::create), kUnsupported for what the engine does not compute, kNo when the sequence may take more
/// memory than is available.
struct ResidentKvReport {
  int block_size = 0;
  std::vector<ResidentKv> kinds;
};
Result<ResidentKvReport> measure_resident_kv(const model::ModelSpec& spec, const EngineOptions& options,
                                             Tokens length);

class Engine {
 public:
  /// Loads weights and lays out the pool. Of a model that does not fit nothing but headers is read.
  /// Errors: kUsage (a model stored quantized that is to be quantized), kUnsupported (stored type or
  ///         architecture the engine lacks), kMalformed (tensor missing or misshaped), kNo (weights do not
  ///         fit memory, pool holds less than one request of max_model_len; names the longest that fits).
  static Result<std::unique_ptr<Engine>> load(std::shared_ptr<const artifact::Artifact> artifact,
                                              const model::ModelSpec& spec, const EngineOptions& options);
  virtual ~Engine() = default;

  virtual MemoryReport memory() const = 0;
  virtual EngineStats stats() const = 0;
  virtual std::int64_t vocab_size() const = 0;

  /// Queues one request per choice and returns the first one's id; the others' follow it.
  /// Errors: kUsage for no choice, an empty prompt, ids outside the vocabulary, a prompt that leaves no
  /// room for one token within max_model_len ("maximum context length is N tokens"), or an embedding of a
  /// model that gives none and the other way round; kNo when it can never fit the pool.
  virtual Result<RequestId> add(Submission submission) = 0;
  /// Frees the request's blocks at once; its next and last output has finish kCancelled. Unknown ids are
  /// ignored.
  virtual void cancel(RequestId request) = 0;
  /// True while a request is waiting or running.
  virtual bool has_work() const = 0;
  /// One scheduler step and one forward pass. Returns what became known, possibly nothing, until the next
  /// step; the caller may move out of it. Allocates nothing once warm, unless a sequence begins, or asks for
  /// logprobs, logits or an embedding.
  virtual std::span<Output> step() = 0;

  /// Why results rest on zeros, once a file that is mapped became shorter: the model's, or one of
  /// packed_cache_dir. To be asked after each step.
  virtual std::optional<Error> cut_error() const = 0;

  /// Writes the prefix cache to prefix_cache_dir, when one was given; for the end, when nothing runs.
  /// Errors: kUsage when it cannot be written.
  virtual Status save_prefix_cache() = 0;

  /// Bytes of the KV pool that the system has made resident, read from the page tables (mincore), not
  /// computed.
  virtual Bytes resident_kv_bytes() const = 0;
};

}  // namespace plimsoll::engine
