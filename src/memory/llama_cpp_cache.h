// SPDX-License-Identifier: Apache-2.0
// What does llama.cpp's context allocate for a length: cells of keys and values, windows, states, outputs?
// All of it at the start, whatever the requests; nothing is paged. Knows layers and flags; where buffers lie
// is llama_cpp_weights.h's matter. Integers throughout. Pure; any thread may call.
// Source: docs/formulas/llama_cpp.md, sections 1 and 2.
#pragma once

#include <cstdint>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "model/model.h"

namespace plimsoll::memory {

/// The engine's flags that shape its context, at the engine's own defaults but for the sequences: one.
struct LlamaCppContext {
  std::int64_t context_tokens = 0;        // --ctx-size: of all sequences together
  int num_seqs = 1;                       // --parallel
  bool is_unified = false;                // --kv-unified: sequences share all cells
  std::int64_t batch_tokens = 2048;       // --batch-size
  std::int64_t micro_batch_tokens = 512;  // --ubatch-size
  DType key_dtype = DType::kF16;          // --cache-type-k
  DType value_dtype = DType::kF16;        // --cache-type-v
  bool keeps_whole_windows = false;       // --swa-full
  bool uses_windows = true;               // the engine's loader of this architecture reads the window at all
  bool absorbs_latents = true;      // latent attention keeps the latent, not each head's keys and values
  bool has_flash_attention = true;  // --flash-attn off makes rows of values as wide as the widest layer's
};

/// What one layer has of its own, over all sequences and cells.
struct LlamaCppLayer {
  Bytes keys, values;
  Bytes index_keys;   // of sparse attention
  Bytes convolution;  // "R": inputs that convolutions look back at
  Bytes state;        // "S"
  bool is_windowed = false;
};

struct LlamaCppCache {
  std::int64_t context_tokens = 0;   // n_ctx, as logged
  std::int64_t sequence_tokens = 0;  // n_ctx_seq: cells of one sequence; of all, where they are shared
  std::int64_t window_tokens = 0;    // the same of layers with windows; 0: there are none
  std::int64_t num_streams = 1;      // copies of these cells
  std::int64_t batch_tokens = 0, micro_batch_tokens = 0;  // as the engine cuts them
  std::vector<LlamaCppLayer> layers;                      // [layers of the model]

  /// The logged sums: "K", "V" of layers with or without a window, index keys, "R" and "S".
  Bytes keys(bool is_windowed) const;
  Bytes values(bool is_windowed) const;
  Bytes index_keys() const;
  Bytes convolutions() const;
  Bytes states() const;
  Bytes total() const;
};

/// Errors: kUsage for sizes below 1, above the engine's 256 sequences, or a quantized type of values without
/// flash attention; kUnsupported for a type whose blocks do not divide a head, and for layers that
/// llama.cpp lays out in ways not known here; kMalformed for sizes that do not fit 63 bits.
Result<LlamaCppCache> llama_cpp_cache(const model::ModelSpec& spec, const LlamaCppContext& context);

/// Logits of one row a sequence in 32 bit: the "output buffer" at the start.
Bytes llama_cpp_output(const model::ModelSpec& spec, int num_seqs);

}  // namespace plimsoll::memory
