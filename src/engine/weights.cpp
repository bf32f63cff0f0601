// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string>

#include "kernels/kernels.h"

namespace plimsoll::engine {
namespace {

using model::Role;

struct Loaded {
  const artifact::Tensor* tensor = nullptr;
  std::span<const std::byte> bytes;
};

// The tensor a weight stands for; nothing when it is optional and absent.
Result<std::optional<Loaded>> load_tensor(const artifact::Artifact& artifact, const model::Weight& weight) {
  const artifact::Tensor* tensor = model::find_tensor(artifact, weight);
  const std::string& name = artifact.form() == artifact::Form::kGguf ? weight.gguf_name : weight.hf_name;
  if (!tensor) {
    if (weight.is_optional) return std::optional<Loaded>();
    return fail(ErrorCode::kMalformed,
                fmt::format("the model calls for tensor {} of shape [{}], no file has it", name,
                            fmt::join(weight.shape, ", ")),
                artifact.root(), "get the complete model; `plimsoll inspect` lists what is missing");
  }
  if (tensor->shape != weight.shape)
    return fail(ErrorCode::kMalformed,
                fmt::format("tensor {} has shape [{}], the config calls for [{}]", name,
                            fmt::join(tensor->shape, ", "), fmt::join(weight.shape, ", ")),
                artifact.files()[static_cast<std::size_t>(tensor->file)].path,
                "config and weights belong to different models");
  if (!kernels::can_read(tensor->dtype))
    return fail(ErrorCode::kUnsupported,
                fmt::format("tensor {} is stored as {}, which the engine does not compute with", name,
                            plimsoll::name(tensor->dtype)),
                artifact.root(),
                "use a version of the model stored as bf16, f16, f32 or a supported GGUF type");
  PLIMSOLL_TRY(const auto bytes, artifact.data(*tensor));
  return std::optional<Loaded>(Loaded{tensor, bytes});
}

Matrix as_matrix(const Loaded& loaded) {
  Matrix matrix;
  matrix.dtype = loaded.tensor->dtype;
  matrix.data = loaded.bytes.data();
  matrix.rows = loaded.tensor->shape[0];
  matrix.columns = loaded.tensor->shape[1];
  const auto row_bytes = stored_bytes(matrix.dtype, matrix.columns);
  PLIMSOLL_CHECK(row_bytes.has_value(), "the artifact admits only rows of whole blocks");
  matrix.row_bytes = row_bytes->value;
  return matrix;
}

std::vector<float> as_floats(const Loaded& loaded) {
  std::vector<float> values(static_cast<std::size_t>(loaded.tensor->elements()));
  kernels::select().to_float(loaded.tensor->dtype, loaded.bytes.data(), loaded.tensor->elements(),
                             values.data());
  return values;
}

// Exactly one of the two is set for a role.
struct Slot {
  Matrix* matrix = nullptr;
  std::vector<float>* vector = nullptr;
};

Slot slot_of(ModelWeights& weights, const model::Weight& weight) {
  LayerWeights* layer = weight.layer >= 0 ? &weights.layers[static_cast<std::size_t>(weight.layer)] : nullptr;
  switch (weight.role) {
    case Role::kNone:
      break;  // check_embedded refuses models with such weights
    case Role::kTokenEmbedding:
      return {&weights.token_embedding, nullptr};
    case Role::kOutputNorm:
      return {nullptr, &weights.output_norm};
    case Role::kOutputHead:
      return {&weights.output_head, nullptr};
    case Role::kRopeFrequencies:
      return {nullptr, &weights.rope_frequencies};
    case Role::kAttentionNorm:
      return {nullptr, &layer->attention_norm};
    case Role::kQuery:
      return {&layer->query, nullptr};
    case Role::kKey:
      return {&layer->key, nullptr};
    case Role::kValue:
      return {&layer->value, nullptr};
    case Role::kAttentionOutput:
      return {&layer->attention_output, nullptr};
    case Role::kQueryBias:
      return {nullptr, &layer->query_bias};
    case Role::kKeyBias:
      return {nullptr, &layer->key_bias};
    case Role::kValueBias:
      return {nullptr, &layer->value_bias};
    case Role::kAttentionOutputBias:
      return {nullptr, &layer->attention_output_bias};
    case Role::kQueryNorm:
      return {nullptr, &layer->query_norm};
    case Role::kKeyNorm:
      return {nullptr, &layer->key_norm};
    case Role::kFfnNorm:
      return {nullptr, &layer->ffn_norm};
    case Role::kGate:
      return {&layer->gate, nullptr};
    case Role::kUp:
      return {&layer->up, nullptr};
    case Role::kDown:
      return {&layer->down, nullptr};
    case Role::kGateBias:
      return {nullptr, &layer->gate_bias};
    case Role::kUpBias:
      return {nullptr, &layer->up_bias};
    case Role::kDownBias:
      return {nullptr, &layer->down_bias};
  }
  PLIMSOLL_CHECK(false, "every role has a slot");
  return {};
}

}  // namespace

Result<ModelWeights> load_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec) {
  ModelWeights weights;
  weights.layers.resize(spec.layers.size());
  for (const auto& weight : spec.weights) {
    PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
    if (!loaded) continue;
    weights.stored += Bytes(loaded->tensor->bytes);
    const Slot slot = slot_of(weights, weight);
    if (slot.matrix)
      *slot.matrix = as_matrix(*loaded);
    else
      *slot.vector = as_floats(*loaded);
  }
  if (spec.ties_embeddings) weights.output_head = weights.token_embedding;
  return weights;
}

}  // namespace plimsoll::engine
