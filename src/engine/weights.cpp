// SPDX-License-Identifier: Apache-2.0
#include "engine/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>

#include "engine/quantized_weights.h"
#include "engine/state_weights.h"
#include "engine/weight_slots.h"
#include "kernels/kernels.h"
#include "memory/embedded_cache.h"
#include "memory/memory.h"
#include "model/declarations.h"
#include "model/stored_weights.h"

namespace plimsoll::engine {
namespace {

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

StoredMatrix as_matrix(const Loaded& loaded, const model::Weight& weight) {
  const auto& shape = loaded.tensor->shape;
  if (weight.is_turned)
    return {shape[1], shape[0], TurnedRows{loaded.tensor->dtype, loaded.bytes.data(), shape[1]}};
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

std::vector<float> some_values(const std::vector<float>& values, std::int64_t count, const RowRuns& runs) {
  std::vector<float> some;
  for (std::int64_t i = 0; i < count && !values.empty(); ++i)
    some.push_back(values[static_cast<std::size_t>(runs.at(i))]);
  return some;
}

// q, k and v out of one matrix.
void take_apart_qkv(const model::Attention& attention, model::FusedRows order, const Fused& fused,
                    LayerWeights& layer) {
  const std::int64_t q = std::int64_t{attention.q_heads} * attention.head_dim;
  const std::int64_t k = std::int64_t{attention.kv_heads} * attention.head_dim, v = k;
  RowRuns queries{0, 0, 0}, keys{q, 0, 0}, values{q + k, 0, 0};
  if (order != model::FusedRows::kStacked) {
    const std::int64_t dim = attention.head_dim;
    const std::int64_t shared =
        order == model::FusedRows::kPerGroup ? attention.q_heads / attention.kv_heads : 1;
    const std::int64_t step = (shared + 2) * dim;
    queries = {0, shared * dim, step};
    keys = {shared * dim, dim, step};
    values = {(shared + 1) * dim, dim, step};
  }
  layer.query = some_rows(fused.qkv, q, queries);
  layer.key = some_rows(fused.qkv, k, keys);
  layer.value = some_rows(fused.qkv, v, values);
  layer.query_bias = some_values(fused.qkv_bias, q, queries);
  layer.key_bias = some_values(fused.qkv_bias, k, keys);
  layer.value_bias = some_values(fused.qkv_bias, v, values);
}

void take_apart(const model::ModelSpec& spec, std::size_t index, const Fused& fused, LayerWeights& layer) {
  if (const model::State* state = memory::state_of(spec.layers[index]))
    take_apart_state(*state, static_cast<int>(index), spec.layers.size(), layer);
  if (fused.qkv.rows > 0)
    take_apart_qkv(std::get<model::Attention>(spec.layers[index].mixer), spec.fused_qkv, fused, layer);
  if (fused.gate_up.rows == 0) return;
  const std::int64_t inner = fused.gate_up.rows / 2;
  const RowRuns gates{0, 0, 0}, ups{inner, 0, 0};
  layer.ffn.gate = some_rows(fused.gate_up, inner, gates);
  layer.ffn.up = some_rows(fused.gate_up, inner, ups);
  layer.ffn.gate_bias = some_values(fused.gate_up_bias, inner, gates);
  layer.ffn.up_bias = some_values(fused.gate_up_bias, inner, ups);
}

void add_one(std::vector<float>& weight) {
  for (float& value : weight) value += 1.0F;
}

void add_one_to_norms(ModelWeights& weights) {
  add_one(weights.output_norm.weight);
  for (LayerWeights& layer : weights.layers)
    for (auto* weight :
         {&layer.attention_norm.weight, &layer.attention_post_norm.weight, &layer.ffn_norm.weight,
          &layer.ffn_post_norm.weight, &layer.query_norm, &layer.key_norm})
      add_one(*weight);
}

Result<StoredMatrix> load_by_scheme(const artifact::Artifact& artifact, const model::Weight& weight,
                                    const model::Quantization& declared) {
  if (const auto* scheme = declared.scheme_of(model::split_name(weight.hf_name).module))
    return load_quantized(artifact, weight, declared, *scheme);
  PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
  PLIMSOLL_CHECK(loaded.has_value(), "matrices are not optional");
  return as_matrix(*loaded, weight);
}

// A matrix in whatever form the file has it.
Result<StoredMatrix> load_matrix(const artifact::Artifact& artifact, const model::Weight& weight,
                                 const std::optional<model::Quantization>& declared) {
  if (declared && !is_stored_plain(artifact, weight)) return load_by_scheme(artifact, weight, *declared);
  PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
  return loaded ? as_matrix(*loaded, weight) : StoredMatrix();
}

Status load_experts(const artifact::Artifact& artifact, const model::Weight& weight,
                    const std::optional<model::Quantization>& declared, LayerWeights& layer) {
  layer.experts.resize(static_cast<std::size_t>(weight.copies));
  for (int i = 0; i < weight.copies; ++i) {
    PLIMSOLL_TRY(*expert_slot(layer.experts[static_cast<std::size_t>(i)], weight.role),
                 load_matrix(artifact, model::copy_of(weight, i), declared));
  }
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
    if (FfnWeights none; expert_slot(none, weight.role)) {
      PLIMSOLL_TRY_VOID(load_experts(artifact, weight, declared, weights.layers[index]));
      continue;
    }
    const Slot slot = weight.layer < 0 ? slot_of(weights, weight.role)
                                       : slot_of(weights.layers[index], fused[index], weight.role);
    if (auto* const* matrix = std::get_if<StoredMatrix*>(&slot)) {
      PLIMSOLL_TRY(**matrix, load_matrix(artifact, weight, declared));
      continue;
    }
    auto* const* vector = std::get_if<std::vector<float>*>(&slot);
    PLIMSOLL_CHECK(vector, "check_embedded admits only roles with a slot");
    PLIMSOLL_TRY(const auto loaded, load_tensor(artifact, weight));
    if (loaded) **vector = as_floats(*loaded);
  }
  for (std::size_t i = 0; i < fused.size(); ++i) take_apart(spec, i, fused[i], weights.layers[i]);
  if (spec.norm_adds_one) add_one_to_norms(weights);
  if (spec.ties_embeddings) weights.output_head = weights.token_embedding;
  return weights;
}

}  // namespace plimsoll::engine
