// SPDX-License-Identifier: Apache-2.0
// How many tokens and requests do SGLang's pools hold, and what share of a GPU does it give them by default?
// One pool of tokens, a second one for layers with windows, slots for states. Leaves open what weights and
// graphs take. Pure; any thread may call. Source: docs/formulas/sglang.md.
#pragma once

#include <cstdint>
#include <optional>

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
  std::optional<int> requests = {};  // --max-running-requests
};

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
  int tensor_parallel = 1;
  std::int64_t page_size = 1;
  std::int64_t context_tokens = 0;  // longest request
  std::optional<int> max_requests = {};
  bool has_window_pool = false;  // facts::sglang_has_window_pool
  bool has_prefix_cache = true;  // --disable-radix-cache
};

struct SglangPool {
  Bytes token_bytes;               // of one token in the first pool, on this rank; states apart
  Bytes window_token_bytes;        // in the second pool
  std::int64_t tokens = 0;         // max_total_num_tokens
  std::int64_t window_tokens = 0;  // of the second pool; 0: there is none
  std::int64_t state_slots = 0;    // max_mamba_cache_size; 0: no states
  Bytes state_bytes;               // of one slot
  std::int64_t max_requests = 0;   // max_running_requests
  /// What the pools take of the bytes given; a page and a slot beside them stay unused.
  Bytes used() const;
};

/// `available`: bytes for pools of each rank. Errors: kNo when KV heads cannot be split; kUnsupported for
/// layers whose pool is not known here; kMalformed for sizes beyond 63 bits.
Result<SglangPool> sglang_pool(const model::ModelSpec& spec, const SglangPoolSettings& settings,
                               Bytes available);

}  // namespace plimsoll::memory
