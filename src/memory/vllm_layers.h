// SPDX-License-Identifier: Apache-2.0
// What does each layer of a model keep in vLLM's cache, on one rank? The list that grouping starts from.
// Knows layers, heads and ranks; nothing of blocks in a pool (vllm_kv.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/vllm_cache_format.h"
#include "memory/vllm_rules.h"
#include "model/model.h"

namespace plimsoll::memory {

enum class VllmKind {
  kFull,
  kSlidingWindow,
  kChunked,
  kLatent,
  kIndexer,
  kCompressedKeys,
  kState,
  kRing,
  kLatentWindow,
  kCompressorState
};
/// The engine's own class: FullAttentionSpec SlidingWindowSpec ChunkedLocalAttentionSpec MLAAttentionSpec
/// MambaSpec CircularBufferSpec SlidingWindowMLASpec.
std::string_view engine_name(VllmKind kind);

/// One thing that a layer keeps: attention per token, or a state of fixed size.
struct VllmLayer {
  VllmKind kind = VllmKind::kFull;
  int layer = 0;                    // place in the model; prediction layers follow the decoder's
  Bytes token_bytes = {};           // of one token, or one entry, on this rank; 0 for a state
  Bytes state_bytes = {};           // of one sequence on this rank; 0 for attention
  std::int64_t reach = 0;           // the window; kChunked: the chunk
  std::int64_t entry_tokens = 1;    // tokens that one entry of the cache stands for
  std::int64_t own_block = 0;       // tokens of its block, whatever the engine's; 0: the engine's
  std::int64_t page_step = 1;       // bytes; its page is a whole number of them
  bool aligns_blocks = false;       // kLatent: a block of all layers is a whole number of its token_bytes
  bool exports_checkpoint = false;  // kState: keeps one block more while prefill runs with cached prefixes
  bool can_keep_all = false;        // kState: of Mamba, whose states can all be kept for prefixes
  std::int64_t chunk_tokens = 0;    // kState: that its kernels take at once; 0: not said
};

/// How keys and values are stored.
enum class VllmCacheType { k16Bit, k8Bit, kFp8DsMla, kPacked };

struct VllmLayerSettings {
  VllmCacheType cache = VllmCacheType::k16Bit;
  const VllmCacheFormat* format = nullptr;  // of kPacked
  DType activation_dtype = DType::kBF16;
  int tensor_parallel = 1;
  int num_speculative_tokens = 0;             // of multi-token prediction: its layers keep keys too
  std::optional<DType> recurrent_dtype = {};  // --mamba-ssm-cache-dtype
  bool pads_latent = false;                   // latent vectors fill whole 256 bytes of the activations' type
  bool aligns_rows = true;                    // a block of sparse latent vectors is a whole number of rows
  VllmStateType state_type = VllmStateType::kDeclared;
  bool has_fp8_index_keys = false;      // compressed index keys: --attention-config.indexer_kv_dtype fp8
  bool gdn_exports_checkpoint = false;  // gated delta nets under --gdn-prefill-backend flashinfer
};

/// All that the model's layers keep, in the engine's order.
/// Errors: kNo when heads cannot be split over the ranks; kUnsupported for layers whose cache vLLM lays out
/// in ways not known here. Source: docs/formulas/vllm_kv_cache.md, sections 1 and 2.
Result<std::vector<VllmLayer>> vllm_layers(const model::ModelSpec& spec, const VllmLayerSettings& settings);

/// What one token more adds in all of them, rounded up: an entry counts by its share. States of fixed size
/// and unfinished sums of a compressor are not in it.
Bytes vllm_token_bytes(const std::vector<VllmLayer>& layers);

}  // namespace plimsoll::memory
