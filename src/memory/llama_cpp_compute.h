// SPDX-License-Identifier: Apache-2.0
// How large do llama.cpp's compute buffers come out? The engine lays the tensors of one step's graph over
// each other and keeps the peak; there is no closed form. Here: the tensors that are alive together in the
// widest moments of a step, and a band. Pure; any thread may call. Source: docs/formulas/llama_cpp.md,
// section 4.
#pragma once

#include "base/units.h"
#include "memory/llama_cpp_cache.h"
#include "model/model.h"

namespace plimsoll::memory {

struct LlamaCppCompute {
  Bytes kept;      // positions, masks, chosen rows: there for the whole step
  Bytes embedded;  // a vector for each token
  Bytes moment;    // what lives together in the widest moment of a step
  Bytes logits;
  int copies = 1;  // of what a device is handed: several where GPUs work on one step while the next comes in
  Bytes band;      // around each buffer

  /// Of the host; `has_layers`: it computes some itself.
  Bytes host(bool has_layers) const;
  /// Of a GPU with layers: the first, which is handed embedded tokens, or one behind it.
  Bytes gpu(bool is_first) const;
};

/// Copies that the engine's scheduler keeps for GPUs that work at the same time.
inline constexpr int kLlamaCppCopies = 4;

/// Of a step of `cache.micro_batch_tokens` tokens that gives `num_outputs` rows of logits.
LlamaCppCompute llama_cpp_compute(const model::ModelSpec& spec, const LlamaCppContext& context,
                                  const LlamaCppCache& cache, int num_outputs, int copies = 1);

}  // namespace plimsoll::memory
