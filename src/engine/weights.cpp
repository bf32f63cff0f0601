// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/expert_weights.h"
#include "engine/fused_weights.h"
#include "engine/state_weights.h"
#include "engine/stored_tensor.h"
#include "engine/weight_slots.h"
#include "memory/embedded_cache.h"
#include "memory/memory.h"
#include "model/declarations.h"
#include "model/stored_weights.h"

namespace plimsoll::engine {
namespace {

void add_one(std::vector<float>& weight) {
  for (float& value : weight) value += 1.0F;
}

void add_one_to_norms(ModelWeights& weights) {
  add_one(weights.output_norm.weight);
  for (LayerWeights& layer : weights.layers)
    for (auto* weight :
         {&layer.attention_norm.weight, &layer.attention_post_norm.weight, &layer.ffn_norm.weight,
          &layer.ffn_post_norm.weight, &layer.query_norm.weight, &layer.key_norm.weight})
      add_one(*weight);
}

// A matrix of each head, which only GGUF has; a tool may have dropped the axis of a single one.
Status load_heads(const artifact::Artifact& artifact, const model::Weight& weight,
                  std::vector<StoredMatrix>& heads) {
  const artifact::Tensor* tensor = model::find_tensor(artifact, weight);
  const bool is_plain = weight.copies == 1 && tensor && tensor->shape.size() == weight.shape.size();
  const model::Weight all = is_plain ? weight : stack_of(weight);
  PLIMSOLL_TRY(const auto stored, load_tensor(artifact, all));
  PLIMSOLL_CHECK(stored.has_value(), "matrices of heads are not optional");
  for (int i = 0; i < weight.copies; ++i) heads.push_back(matrix_of(*stored, all, i));
  return {};
}

// Norms without weights multiply by one.
void put_ones(const model::ModelSpec& spec, ModelWeights& weights) {
  const std::vector<float> ones(static_cast<std::size_t>(spec.hidden_size), 1.0F);
  weights.output_norm.weight = ones;
  for (LayerWeights& layer : weights.layers) layer.attention_norm.weight = layer.ffn_norm.weight = ones;
}

// A state carries what it is multiplied with to every later token, and an infinite decay would pass for one
// that forgets all.
Status check_state_vector(const model::Weight& weight, const std::vector<float>& values) {
  if (weight.group != model::WeightGroup::kState) return {};
  const bool is_logarithm = weight.role == model::Role::kStateDecay;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]) || (is_logarithm && !std::isfinite(std::exp(values[i]))))
      return fail(ErrorCode::kMalformed,
                  fmt::format("element {} is {}, which {} no finite number: no state can be computed with it",
                              i, values[i], std::isfinite(values[i]) ? "stands for" : "is"),
                  weight.hf_name,
                  "download the file again; plimsoll inspect MODEL --deep counts such values");
  return {};
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
  std::vector<Fused> fused(spec.layers.size());
  for (const auto& weight : spec.weights) {
    if (!memory::is_computed(weight)) continue;
    for (const artifact::Tensor* tensor : model::tensors_of(artifact, weight))
      weights.stored += Bytes(tensor->bytes);
    const auto index = static_cast<std::size_t>(std::max(weight.layer, 0));
    if (is_of_experts(weight.role)) {
      PLIMSOLL_TRY_VOID(
          load_experts(artifact, weight, declared, spec.alternates_gate_up, weights.layers[index].experts));
      continue;
    }
    const Slot slot = weight.layer < 0 ? slot_of(weights, weight.role)
                                       : slot_of(weights.layers[index], fused[index], weight.role);
    if (auto* const* matrix = std::get_if<StoredMatrix*>(&slot)) {
      PLIMSOLL_TRY(**matrix, load_matrix(artifact, weight, declared));
      continue;
    }
    if (auto* const* heads = std::get_if<std::vector<StoredMatrix>*>(&slot)) {
      PLIMSOLL_TRY_VOID(load_heads(artifact, weight, **heads));
      continue;
    }
    auto* const* vector = std::get_if<std::vector<float>*>(&slot);
    PLIMSOLL_CHECK(vector, "check_embedded admits only roles with a slot");
    PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
    if (!loaded) continue;
    **vector = floats_of(*loaded);
    PLIMSOLL_TRY_VOID(check_state_vector(weight, **vector));
  }
  for (std::size_t i = 0; i < fused.size(); ++i) {
    take_apart(spec, i, fused[i], weights.layers[i]);
    if (const model::State* state = memory::state_of(spec.layers[i]))
      take_apart_state(*state, static_cast<int>(i), spec.layers.size(), weights.layers[i]);
  }
  if (!spec.has_norm_weights) put_ones(spec, weights);
  if (spec.norm_adds_one) add_one_to_norms(weights);
  if (spec.ties_embeddings) weights.output_head = weights.token_embedding;
  return weights;
}

}  // namespace plimsoll::engine
