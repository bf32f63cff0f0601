// SPDX-License-Identifier: Apache-2.0
// On which device does llama.cpp lay each weight, and how large are its model buffers? Layers go to GPUs from
// the last backwards, the output with them, lookup tables stay with the CPU; flags move single tensors.
// Owns what it returns; pure but for llama_cpp_weights(artifact), which reads headers. Any thread may call.
// Source: docs/formulas/llama_cpp.md, section 3.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "model/model.h"

namespace plimsoll::memory {

/// What the engine does with a tensor decides where it lies.
enum class LlamaCppPlace {
  kInput,      // looked up by token or position: always with the CPU
  kRepeating,  // of a layer
  kShared,     // read by every layer: a copy on each device that has one
  kOutput,     // head and last norm: as one more layer behind the last
};

struct LlamaCppWeight {
  std::string name;  // blk.0.attn_q.weight; empty where only the group is known
  LlamaCppPlace place = LlamaCppPlace::kOutput;
  int layer = -1;
  bool is_expert = false;
  DType dtype = DType::kF16;
  std::int64_t columns = 0, rows = 0;  // of the innermost two axes
  int rank = 0;                        // axes longer than 1
  Bytes bytes;
  int file = 0;  // a split file's part, and the place in it
  std::int64_t offset = 0;
};

struct LlamaCppModelWeights {
  std::vector<LlamaCppWeight> weights;
  int num_layers = 0;           // layers that predict further tokens among them
  bool ties_embedding = false;  // the head is the embedding, which is then there twice
  bool is_stored = false;       // by a file's headers, else by the model's config
};

/// The tensors of a GGUF file.
LlamaCppModelWeights llama_cpp_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec);
/// What a converted file would hold: matrices of `matrix_bits` a weight, vectors in 32 bit. Of a model whose
/// weights are not all known, `total` is spread evenly over its layers.
LlamaCppModelWeights llama_cpp_weights(const model::ModelSpec& spec, int matrix_bits, Bytes total);

/// One --override-tensor: tensors whose names match go to that device.
struct LlamaCppOverride {
  std::string pattern;  // ECMAScript, found anywhere in the name
  int gpu = -1;         // -1: the CPU
};

struct LlamaCppPlacement {
  int num_gpus = 0;
  int gpu_layers = -1;             // --n-gpu-layers; the output counts as one; -1: all
  std::vector<double> split = {};  // shares of the GPUs: [num_gpus]; empty: alike
  int cpu_expert_layers = 0;       // --n-cpu-moe: experts of the first layers stay with the CPU
  std::vector<LlamaCppOverride> overrides = {};
  bool is_mapped = true;    // --load-mode none: what stays with the CPU is read into buffers of its own
  bool is_repacked = true;  // the CPU's kernels take some types in an order of their own: a second copy
};

/// The device of each layer and, last, of the output: [num_layers + 1]; -1: the CPU.
std::vector<int> llama_cpp_layer_devices(int num_layers, const LlamaCppPlacement& placement);

/// Sizes of the model buffers as the engine prints them.
struct LlamaCppWeightBuffers {
  std::vector<Bytes> gpus;  // [num_gpus]
  Bytes host;               // CPU, or CPU_Mapped: from the first to the last byte that is used of each file
  Bytes repacked;           // CPU_REPACK
};

/// What a layer takes of a GPU, wherever the others lie; the last is the output: [num_layers + 1]. `shared`,
/// which every GPU with a layer has beside them, is not in it.
struct LlamaCppLayerBytes {
  std::vector<Bytes> layers;
  Bytes shared;
};
LlamaCppLayerBytes llama_cpp_layer_bytes(const LlamaCppModelWeights& model);

/// Errors: kUsage for a pattern that is no regular expression, or overrides without names to match.
Result<LlamaCppWeightBuffers> llama_cpp_weight_buffers(const LlamaCppModelWeights& model,
                                                       const LlamaCppPlacement& placement);

/// Up to whole steps of `alignment`, as buffers lay tensors one behind the other.
Bytes llama_cpp_aligned(Bytes bytes, bool is_gpu);

}  // namespace plimsoll::memory
