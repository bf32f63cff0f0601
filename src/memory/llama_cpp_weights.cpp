// SPDX-License-Identifier: Apache-2.0
#include "memory/llama_cpp_weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <regex>

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kHostAlignment = 32;  // TENSOR_ALIGNMENT of ggml
constexpr std::int64_t kGpuAlignment = 128;  // of CUDA's buffers
constexpr std::int64_t kGpuRowStep = 512;    // CUDA's kernels read quantized rows in so many elements
constexpr std::int64_t kRepackedRows = 8;    // rows that are woven together
constexpr const char* kEmbedding = "token_embd.weight";
constexpr std::size_t kLongestPattern = 400;  // of a flag

// Tables that are looked up, and what all layers read. Source: llama.cpp's table of tensors.
constexpr std::array<std::string_view, 4> kInputs{"token_embd.", "position_embd.", "token_types.",
                                                  "per_layer_token_embd."};
constexpr std::array<std::string_view, 3> kShared{"rope_freqs.", "rope_factors_long.", "rope_factors_short."};

template <std::size_t N>
bool starts_with_any(std::string_view name, const std::array<std::string_view, N>& starts) {
  return std::any_of(starts.begin(), starts.end(), [&](auto start) { return name.starts_with(start); });
}

std::optional<int> layer_of(std::string_view name) {
  if (!name.starts_with("blk.")) return std::nullopt;
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  if (error != std::errc{} || end == name.data() + name.size() || *end != '.' || layer < 0)
    return std::nullopt;
  return layer;
}

bool names_experts(std::string_view name) {
  return name.find("_exps") != std::string_view::npos || name.find("_chexps") != std::string_view::npos;
}

LlamaCppPlace place_of(std::string_view name, const std::optional<int>& layer) {
  if (layer) return LlamaCppPlace::kRepeating;
  if (starts_with_any(name, kInputs)) return LlamaCppPlace::kInput;
  return starts_with_any(name, kShared) ? LlamaCppPlace::kShared : LlamaCppPlace::kOutput;
}

// The CPU's kernels for AVX2; of other processors they take other types.
bool is_repackable(const LlamaCppWeight& weight, LlamaCppPlace place) {
  const bool is_taken = weight.dtype == DType::kQ4_0 || weight.dtype == DType::kQ4K ||
                        weight.dtype == DType::kIQ4NL || weight.dtype == DType::kMXFP4;
  return is_taken && place != LlamaCppPlace::kInput && weight.rows % kRepackedRows == 0 &&
         weight.rank == (weight.is_expert ? 3 : 2);
}

// The last row of a quantized matrix is filled up so that kernels may read past its end.
Bytes bytes_on_gpu(const LlamaCppWeight& weight) {
  const std::int64_t rest = weight.columns % kGpuRowStep;
  if (!is_block_quantized(weight.dtype) || rest == 0) return weight.bytes;
  return weight.bytes + stored_bytes(weight.dtype, kGpuRowStep - rest).value_or(Bytes(0));
}

class BufferSums {
 public:
  explicit BufferSums(const LlamaCppPlacement& placement) : placement_(placement) {
    buffers_.gpus.resize(static_cast<std::size_t>(placement.num_gpus));
  }

  // With GPUs what the CPU keeps is meant for their copies, and is not repacked.
  void add(const LlamaCppWeight& weight, LlamaCppPlace place, int device) {
    if (device >= 0) {
      buffers_.gpus[static_cast<std::size_t>(device)] += llama_cpp_aligned(bytes_on_gpu(weight), true);
    } else if (placement_.num_gpus == 0 && placement_.is_repacked && is_repackable(weight, place)) {
      buffers_.repacked += llama_cpp_aligned(weight.bytes, false);
    } else if (placement_.is_mapped) {
      const auto [at, is_new] = ranges_.try_emplace(weight.file, weight.offset, weight.offset);
      at->second.first = std::min(at->second.first, weight.offset);
      at->second.second = std::max(at->second.second, weight.offset + weight.bytes.value);
    } else if (std::find(kept_.begin(), kept_.end(), &weight) == kept_.end()) {
      kept_.push_back(&weight);  // a tied head is the embedding itself
      buffers_.host += llama_cpp_aligned(weight.bytes, false);
    }
  }

  LlamaCppWeightBuffers take() {
    for (const auto& [file, range] : ranges_) buffers_.host += Bytes(range.second - range.first);
    return std::move(buffers_);
  }

 private:
  const LlamaCppPlacement& placement_;
  LlamaCppWeightBuffers buffers_;
  std::map<int, std::pair<std::int64_t, std::int64_t>> ranges_;  // by file: first and last byte used
  std::vector<const LlamaCppWeight*> kept_;
};

Result<std::vector<std::pair<std::regex, int>>> compiled(const std::vector<LlamaCppOverride>& overrides) {
  std::vector<std::pair<std::regex, int>> patterns;
  for (const LlamaCppOverride& override : overrides) {
    const auto refused = [&] {
      return fail(ErrorCode::kUsage,
                  "\"" + override.pattern.substr(0, 60) + "\" is no regular expression for tensors' names",
                  "--override-tensor", "write for example 'exps=CPU'");
    };
    if (override.pattern.size() > kLongestPattern) return refused();
    try {
      patterns.emplace_back(std::regex(override.pattern), override.gpu);
    } catch (const std::regex_error&) {
      return refused();
    }
  }
  return patterns;
}

}  // namespace

Bytes llama_cpp_aligned(Bytes bytes, bool is_gpu) {
  const std::int64_t step = is_gpu ? kGpuAlignment : kHostAlignment;
  return Bytes((bytes.value + step - 1) / step * step);
}

LlamaCppModelWeights llama_cpp_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec) {
  LlamaCppModelWeights model;
  model.is_stored = true;
  model.ties_embedding = artifact.find("output.weight") == nullptr;
  model.num_layers = static_cast<int>(spec.layers.size() + spec.mtp_layers.size());
  for (const artifact::Tensor& tensor : artifact.tensors()) {
    LlamaCppWeight weight;
    weight.name = std::string(tensor.name);
    const auto layer = layer_of(tensor.name);
    if (layer && *layer >= model.num_layers) continue;
    weight.layer = layer.value_or(-1);
    weight.place = place_of(tensor.name, layer);
    weight.is_expert = names_experts(tensor.name);
    weight.dtype = tensor.dtype;
    const std::size_t axes = tensor.shape.size();
    weight.columns = axes > 0 ? tensor.shape[axes - 1] : 1;
    weight.rows = axes > 1 ? tensor.shape[axes - 2] : 1;
    // A last axis of length 1 is no axis for the engine.
    for (std::size_t axis = 0; axis < axes && weight.rank == 0; ++axis)
      if (tensor.shape[axis] > 1) weight.rank = static_cast<int>(axes - axis);
    weight.bytes = Bytes(tensor.bytes);
    weight.file = tensor.file;
    weight.offset = tensor.offset_bytes;
    model.weights.push_back(std::move(weight));
  }
  return model;
}

LlamaCppModelWeights llama_cpp_weights(const model::ModelSpec& spec, int matrix_bits, Bytes total) {
  LlamaCppModelWeights model;
  model.ties_embedding = spec.ties_embeddings;
  model.num_layers = static_cast<int>(spec.layers.size());
  std::int64_t offset = 0;
  const auto add = [&](LlamaCppPlace place, int layer, Bytes bytes, bool is_expert,
                       bool is_embedding = false) {
    LlamaCppWeight weight;
    if (is_embedding) weight.name = kEmbedding;
    weight.place = place;
    weight.layer = layer;
    weight.is_expert = is_expert;
    weight.bytes = bytes;
    weight.offset = offset;
    offset += bytes.value;
    model.weights.push_back(std::move(weight));
  };
  if (!spec.has_all_weights || spec.weights.empty()) {
    const Bytes table(spec.vocab_size * spec.hidden_size * matrix_bits / 8);
    add(LlamaCppPlace::kInput, -1, std::min(table, total), false, true);
    const Bytes rest = total - std::min(table, total);
    for (int layer = 0; layer < model.num_layers; ++layer)
      add(LlamaCppPlace::kRepeating, layer, Bytes(rest.value / std::max(1, model.num_layers)), false);
    return model;
  }
  for (const model::Weight& weight : spec.weights) {
    if (weight.group == model::WeightGroup::kEncoder || weight.group == model::WeightGroup::kMtp) continue;
    const std::int64_t elements = weight.elements() * weight.copies;
    const Bytes bytes(weight.shape.size() < 2 && weight.copies == 1 ? elements * 4
                                                                    : elements * matrix_bits / 8);
    const bool is_input =
        weight.group == model::WeightGroup::kEmbedding || weight.group == model::WeightGroup::kTable;
    const bool is_layers = weight.layer >= 0 && weight.layer < model.num_layers;
    add(is_input    ? LlamaCppPlace::kInput
        : is_layers ? LlamaCppPlace::kRepeating
                    : LlamaCppPlace::kOutput,
        is_layers ? weight.layer : -1, bytes, weight.group == model::WeightGroup::kExperts,
        weight.group == model::WeightGroup::kEmbedding);
  }
  return model;
}

std::vector<int> llama_cpp_layer_devices(int num_layers, const LlamaCppPlacement& placement) {
  const int all = num_layers + 1;
  std::vector<int> devices(static_cast<std::size_t>(all), -1);
  if (placement.num_gpus == 0) return devices;
  // In 32 bit, as the engine computes where one GPU ends.
  std::vector<float> ends(static_cast<std::size_t>(placement.num_gpus));
  float sum = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    sum += i < placement.split.size() ? static_cast<float>(placement.split[i])
                                      : (placement.split.empty() ? 1.0F : 0.0F);
    ends[i] = sum;
  }
  for (float& end : ends) end /= sum;
  const int on_gpus = placement.gpu_layers < 0 ? all : std::min(placement.gpu_layers, all);
  const int first = all - on_gpus;
  for (int layer = first; layer < all; ++layer) {
    const float place = static_cast<float>(layer - first) / static_cast<float>(on_gpus);
    const auto at = std::upper_bound(ends.begin(), ends.end(), place) - ends.begin();
    devices[static_cast<std::size_t>(layer)] = std::min(static_cast<int>(at), placement.num_gpus - 1);
  }
  return devices;
}

LlamaCppLayerBytes llama_cpp_layer_bytes(const LlamaCppModelWeights& model) {
  LlamaCppLayerBytes sums;
  sums.layers.resize(static_cast<std::size_t>(model.num_layers) + 1);
  for (const LlamaCppWeight& weight : model.weights) {
    const Bytes bytes = llama_cpp_aligned(bytes_on_gpu(weight), true);
    if (weight.place == LlamaCppPlace::kShared)
      sums.shared += bytes;
    else if (weight.place == LlamaCppPlace::kRepeating)
      sums.layers[static_cast<std::size_t>(weight.layer)] += bytes;
    else if (weight.place == LlamaCppPlace::kOutput || (weight.name == kEmbedding && model.ties_embedding))
      sums.layers.back() += bytes;
  }
  return sums;
}

Result<LlamaCppWeightBuffers> llama_cpp_weight_buffers(const LlamaCppModelWeights& model,
                                                       const LlamaCppPlacement& placement) {
  PLIMSOLL_TRY(const auto overrides, compiled(placement.overrides));
  if (!overrides.empty() && !model.is_stored)
    return fail(ErrorCode::kUsage, "a config has no tensors whose names could match", "--override-tensor",
                "give the .gguf file as MODEL, or use --n-cpu-moe");
  const std::vector<int> devices = llama_cpp_layer_devices(model.num_layers, placement);
  BufferSums sums(placement);
  const auto device_for = [&](const LlamaCppWeight& weight, int device) {
    for (const auto& [pattern, gpu] : overrides)
      if (std::regex_search(weight.name, pattern)) return gpu;
    return weight.is_expert && weight.layer >= 0 && weight.layer < placement.cpu_expert_layers ? -1 : device;
  };
  for (const LlamaCppWeight& weight : model.weights) {
    if (weight.place == LlamaCppPlace::kShared) {
      for (int device = -1; device < placement.num_gpus; ++device)
        if (std::find(devices.begin(), devices.end() - 1, device) != devices.end() - 1)
          sums.add(weight, weight.place, device_for(weight, device));
      continue;
    }
    const int own = weight.place == LlamaCppPlace::kInput ? -1
                    : weight.place == LlamaCppPlace::kRepeating
                        ? devices[static_cast<std::size_t>(weight.layer)]
                        : devices.back();
    sums.add(weight, weight.place, device_for(weight, own));
    if (weight.name == kEmbedding && model.ties_embedding)
      sums.add(weight, LlamaCppPlace::kOutput, device_for(weight, devices.back()));
  }
  return sums.take();
}

}  // namespace plimsoll::memory
