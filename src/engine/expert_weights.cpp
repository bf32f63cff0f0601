// SPDX-License-Identifier: Apache-2.0
#include "engine/expert_weights.h"

#include <utility>

#include "engine/fused_weights.h"
#include "engine/quantized_weights.h"
#include "engine/stored_tensor.h"
#include "model/stored_weights.h"

namespace plimsoll::engine {
namespace {

using model::Role;

void put_matrix(Role role, StoredMatrix matrix, bool alternates_gate_up, FfnWeights& expert) {
  switch (role) {
    case Role::kExpertGate:
      expert.gate = std::move(matrix);
      return;
    case Role::kExpertUp:
      expert.up = std::move(matrix);
      return;
    case Role::kExpertDown:
      expert.down = std::move(matrix);
      return;
    default:
      return take_gate_up(matrix, alternates_gate_up, expert);
  }
}

void put_vector(Role role, std::vector<float> values, bool alternates_gate_up, FfnWeights& expert) {
  if (role == Role::kExpertDownBias)
    expert.down_bias = std::move(values);
  else
    take_gate_up_bias(values, alternates_gate_up, expert);
}

bool is_in_blocks(const artifact::Artifact& artifact, const model::Weight& weight,
                  const std::optional<model::Quantization>& declared) {
  if (!declared || model::find_tensor(artifact, weight)) return false;
  const auto* scheme = declared->scheme_of(model::split_name(weight.hf_name).module);
  return scheme && scheme->layout == model::Layout::kMxfp4Blocks;
}

Status load_blocks(const artifact::Artifact& artifact, const model::Weight& weight, bool alternates_gate_up,
                   std::vector<FfnWeights>& experts) {
  const std::int64_t rows = weight.shape[weight.is_turned ? 1 : 0];
  const std::int64_t columns = weight.shape[weight.is_turned ? 0 : 1];
  for (int i = 0; i < weight.copies; ++i) {
    PLIMSOLL_TRY(StoredMatrix matrix,
                 load_expert_blocks(artifact, weight.hf_name, weight.copies, i, rows, columns));
    put_matrix(weight.role, std::move(matrix), alternates_gate_up, experts[static_cast<std::size_t>(i)]);
  }
  return {};
}

Status load_stacked(const artifact::Artifact& artifact, const model::Weight& weight, bool alternates_gate_up,
                    std::vector<FfnWeights>& experts) {
  const model::Weight all = stack_of(weight);
  PLIMSOLL_TRY(const auto stored, load_tensor(artifact, all));
  PLIMSOLL_CHECK(stored.has_value(), "experts are not optional");
  if (weight.shape.size() == 2) {
    for (std::size_t i = 0; i < experts.size(); ++i)
      put_matrix(weight.role, matrix_of(*stored, all, static_cast<std::int64_t>(i)), alternates_gate_up,
                 experts[i]);
    return {};
  }
  const std::vector<float> values = floats_of(*stored);
  const std::int64_t width = weight.shape[0];
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const auto first = values.begin() + static_cast<std::int64_t>(i) * width;
    put_vector(weight.role, {first, first + width}, alternates_gate_up, experts[i]);
  }
  return {};
}

}  // namespace

bool is_of_experts(Role role) {
  switch (role) {
    case Role::kExpertGate:
    case Role::kExpertUp:
    case Role::kExpertDown:
    case Role::kExpertGateUp:
    case Role::kExpertGateUpBias:
    case Role::kExpertDownBias:
      return true;
    default:
      return false;
  }
}

Status load_experts(const artifact::Artifact& artifact, const model::Weight& weight,
                    const std::optional<model::Quantization>& declared, bool alternates_gate_up,
                    std::vector<FfnWeights>& experts) {
  experts.resize(static_cast<std::size_t>(weight.copies));
  if (is_in_blocks(artifact, weight, declared))
    return load_blocks(artifact, weight, alternates_gate_up, experts);
  if (model::is_stacked(artifact, weight)) return load_stacked(artifact, weight, alternates_gate_up, experts);
  for (int i = 0; i < weight.copies; ++i) {
    PLIMSOLL_TRY(StoredMatrix matrix, load_matrix(artifact, model::copy_of(weight, i), declared));
    put_matrix(weight.role, std::move(matrix), alternates_gate_up, experts[static_cast<std::size_t>(i)]);
  }
  return {};
}

}  // namespace plimsoll::engine
