// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string>

#include "engine/quantized_weights.h"
#include "kernels/kernels.h"
#include "memory/memory.h"
#include "model/declarations.h"
#include "model/stored_weights.h"

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

StoredMatrix as_matrix(const Loaded& loaded) {
  const auto& shape = loaded.tensor->shape;
  const auto row_bytes = stored_bytes(loaded.tensor->dtype, shape[1]);
  PLIMSOLL_CHECK(row_bytes.has_value(), "the artifact admits only rows of whole blocks");
  return {shape[0], shape[1], PlainRows{loaded.tensor->dtype, loaded.bytes.data(), row_bytes->value}};
}

std::vector<float> as_floats(const Loaded& loaded) {
  std::vector<float> values(static_cast<std::size_t>(loaded.tensor->elements()));
  kernels::select().to_float(loaded.tensor->dtype, loaded.bytes.data(), loaded.tensor->elements(),
                             values.data());
  return values;
}

// Exactly one of the two is set for a role.
struct Slot {
  StoredMatrix* matrix = nullptr;
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

Result<StoredMatrix> load_by_scheme(const artifact::Artifact& artifact, const model::Weight& weight,
                                    const model::Quantization& declared) {
  if (const auto* scheme = declared.scheme_of(model::split_name(weight.hf_name).module))
    return load_quantized(artifact, weight, declared, *scheme);
  PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
  PLIMSOLL_CHECK(loaded.has_value(), "matrices are not optional");
  return as_matrix(*loaded);
}

}  // namespace

Result<ModelWeights> load_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec) {
  const auto declared = model::declared_quantization(artifact);
  if (declared) PLIMSOLL_TRY_VOID(memory::check_embedded_quantization(*declared));
  if (declared && !declared->can_answer(spec.weights.size()))
    return fail(ErrorCode::kUnsupported, "the config has more rules for groups of modules than are tried",
                "config.json: " + declared->pointer, "serve it with another engine");
  ModelWeights weights;
  weights.layers.resize(spec.layers.size());
  for (const auto& weight : spec.weights) {
    if (weight.role == Role::kNone) continue;  // of prediction layers, which the graph has no use for
    const Slot slot = slot_of(weights, weight);
    for (const artifact::Tensor* tensor : model::tensors_of(artifact, weight))
      weights.stored += Bytes(tensor->bytes);
    if (declared && slot.matrix && !is_stored_plain(artifact, weight)) {
      PLIMSOLL_TRY(*slot.matrix, load_by_scheme(artifact, weight, *declared));
      continue;
    }
    PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
    if (!loaded) continue;
    if (slot.matrix)
      *slot.matrix = as_matrix(*loaded);
    else
      *slot.vector = as_floats(*loaded);
  }
  if (spec.ties_embeddings) weights.output_head = weights.token_embedding;
  return weights;
}

}  // namespace plimsoll::engine
