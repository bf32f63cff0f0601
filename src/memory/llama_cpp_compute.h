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
  Bytes inputs;  // what the host hands to GPUs each step: embedded tokens, positions, masks, chosen rows
  Bytes peak;    // of a device that computes layers
  Bytes band;    // around the peak
};

/// Of a step of `cache.micro_batch_tokens` tokens that gives `num_outputs` rows of logits.
LlamaCppCompute llama_cpp_compute(const model::ModelSpec& spec, const LlamaCppContext& context,
                                  const LlamaCppCache& cache, int num_outputs);

}  // namespace plimsoll::memory
