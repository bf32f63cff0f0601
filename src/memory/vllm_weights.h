// SPDX-License-Identifier: Apache-2.0
// How many bytes of a model's weights does each rank of vLLM hold?
// Every weight of the spec is split, copied or kept whole as the engine's layers do; buffers come beside
// them. Exact in 16 bit; quantized layouts count as the checkpoint stores them, with the padding and copies
// that are known. Pure. Source: docs/formulas/vllm_weights.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/weights.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::memory {

/// How much of an encoder is split over tensor-parallel ranks; embeddings of patches and norms never are.
/// Source: facts/vllm_encoders.h.
enum class EncoderSplit { kNone, kBlocks, kBlocksAndProjector };

struct VllmWeightSettings {
  DType dtype = DType::kBF16;  // of all weights but those that the engine keeps in 32 bit
  int tensor_parallel = 1;
  int data_parallel = 1;            // copies of the model; they share their experts
  bool is_expert_parallel = false;  // whole experts to ranks, instead of a slice of each
  bool has_prediction_layers = false;
  int stage = 0, num_stages = 1;                      // --pipeline-parallel-size
  std::vector<int> stage_of_layer = {};               // empty: vLLM's shares
  const model::Quantization* quantization = nullptr;  // as the config declares it
  std::int64_t expert_width_step = 128;               // of four-bit floats; Hopper's kernels take 64
  std::optional<WeightFormat> linear_format = {};     // linear layers quantized while loading
  bool has_encoders = true;                           // else --language-model-only
  EncoderSplit encoder_split = EncoderSplit::kNone;
  bool keeps_tables_in_host = false;  // n-gram tables lie in the host's memory
};

struct VllmWeights {
  Bytes bytes;                       // of the stage's rank 0
  Bytes in_host;                     // of n-gram tables, the rank's share that is not on its GPU
  bool is_exact = true;              // false: some weights are quantized, and engines lay them out anew
  std::vector<std::string> unknown;  // names of weights whose splitting is not known: counted whole
};

/// Errors: kNo when heads, widths or experts cannot be split over the ranks; kUnsupported when the model's
/// weights are not all known; kMalformed for sizes beyond 63 bits.
Result<VllmWeights> vllm_weights(const model::ModelSpec& spec, const VllmWeightSettings& settings);

/// What each rank keeps beside them, counted by the engine's load line: tables of the rotary embedding, one
/// for each that differs, scales of every attention layer, the embedding's normalizer. Errors: kMalformed for
/// sizes beyond 63 bits.
Result<Bytes> vllm_buffers(const model::ModelSpec& spec, DType dtype);

}  // namespace plimsoll::memory
