// SPDX-License-Identifier: Apache-2.0
// How many tokens and requests do SGLang's pools hold, and what share of a GPU does it give them by default?
// One pool of tokens, a second one for layers with windows, slots for states. Leaves open what weights and
// graphs take. Pure; any thread may call. Source: docs/formulas/sglang.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "model/model.h"

namespace plimsoll::memory {

struct SglangLayout {
  int tensor_parallel = 1, pipeline_parallel = 1;
  bool is_latent = false;            // latent attention: its pool is sized before graphs are captured
  bool is_eager = false;             // --disable-cuda-graph: as above
  std::optional<int> chunk = {};     // --chunked-prefill-size
  std::optional<int> requests = {};  // --max-running-requests, or sglang_requests()
};

/// --max-running-requests, or the engine's own number where it drafts; else nothing.
std::optional<int> sglang_requests(std::optional<int> asked, bool has_drafts);
/// The stage of each layer: [num_layers]. The last stages have one more where they do not divide.
std::vector<int> sglang_stages(std::int64_t num_layers, int num_stages);

/// Defaults that hang on the GPU.
struct SglangDefaults {
  std::int64_t chunk_tokens = 0;     // chunked_prefill_size
  std::int64_t graph_batch = 0;      // largest decode batch that is captured
  double static_share = 0;           // mem_fraction_static, of three decimals
  bool sizes_after_capture = false;  // the pool takes what graphs leave
};
SglangDefaults sglang_defaults(Bytes gpu_memory, const SglangLayout& layout);
bool sglang_keeps_latents(const model::ModelSpec& spec);

struct SglangPoolSettings {
  DType cache_dtype = DType::kBF16;
  int tensor_parallel = 1, pipeline_parallel = 1;
  std::int64_t page_size = 1;
  std::int64_t context_tokens = 0;       // longest request
  std::optional<int> max_requests = {};  // sglang_requests()
  int draft_tokens = 0;                  // checked at once: drafted ones and one more; 0: no drafts
  int draft_layers = 0;                  // facts::sglang_draft_layers
  bool has_window_pool = false;          // facts::sglang_has_window_pool
  bool has_prefix_cache = true;          // --disable-radix-cache
};

struct SglangPool {
  Bytes token_bytes;          // of one token in the first pool, on the rank that has fewest; states apart
  Bytes window_token_bytes;   // in the second pool
  std::vector<Bytes> stages;  // of one token in both, on each pipeline stage
  std::int64_t tokens = 0;    // max_total_num_tokens
  std::int64_t window_tokens = 0;  // of the second pool; 0: there is none
  std::int64_t state_slots = 0;    // max_mamba_cache_size; 0: no states
  Bytes state_bytes;               // of one slot, on the stage with most
  Bytes draft_state_bytes;         // what drafts keep of states, over all requests
  std::int64_t max_requests = 0;   // max_running_requests
  /// What the pools and drafts take of the bytes given; a page and a slot beside them stay unused.
  Bytes used() const;
};

/// `available`: bytes for pools of each rank. Errors: kNo when KV heads cannot be split; kUnsupported for
/// layers whose pool is not known here; kMalformed for sizes beyond 63 bits.
Result<SglangPool> sglang_pool(const model::ModelSpec& spec, const SglangPoolSettings& settings,
                               Bytes available);

}  // namespace plimsoll::memory
