// SPDX-License-Identifier: Apache-2.0
#include "engine/weight_slots.h"

namespace plimsoll::engine {
namespace {

using model::Role;

struct EndRow {
  Role role;
  Slot (*slot)(ModelWeights& weights);
};
constexpr EndRow kEnds[] = {
    {Role::kTokenEmbedding, [](ModelWeights& weights) -> Slot { return &weights.token_embedding; }},
    {Role::kPositionEmbedding, [](ModelWeights& weights) -> Slot { return &weights.position_embedding; }},
    {Role::kTokenTypeEmbedding, [](ModelWeights& weights) -> Slot { return &weights.token_type_embedding; }},
    {Role::kEmbeddingNorm, [](ModelWeights& weights) -> Slot { return &weights.embedding_norm.weight; }},
    {Role::kEmbeddingNormBias, [](ModelWeights& weights) -> Slot { return &weights.embedding_norm.bias; }},
    {Role::kOutputNorm, [](ModelWeights& weights) -> Slot { return &weights.output_norm.weight; }},
    {Role::kOutputNormBias, [](ModelWeights& weights) -> Slot { return &weights.output_norm.bias; }},
    {Role::kOutputHead, [](ModelWeights& weights) -> Slot { return &weights.output_head; }},
    {Role::kOutputHeadBias, [](ModelWeights& weights) -> Slot { return &weights.output_head_bias; }},
    {Role::kRopeFrequencies, [](ModelWeights& weights) -> Slot { return &weights.rope_frequencies; }},
};

struct LayerRow {
  Role role;
  Slot (*slot)(LayerWeights& layer);
};
constexpr LayerRow kLayers[] = {
    {Role::kAttentionNorm, [](LayerWeights& layer) -> Slot { return &layer.attention_norm.weight; }},
    {Role::kAttentionNormBias, [](LayerWeights& layer) -> Slot { return &layer.attention_norm.bias; }},
    {Role::kAttentionPostNorm, [](LayerWeights& layer) -> Slot { return &layer.attention_post_norm.weight; }},
    {Role::kQuery, [](LayerWeights& layer) -> Slot { return &layer.query; }},
    {Role::kKey, [](LayerWeights& layer) -> Slot { return &layer.key; }},
    {Role::kValue, [](LayerWeights& layer) -> Slot { return &layer.value; }},
    {Role::kAttentionOutput, [](LayerWeights& layer) -> Slot { return &layer.attention_output; }},
    {Role::kQueryBias, [](LayerWeights& layer) -> Slot { return &layer.query_bias; }},
    {Role::kKeyBias, [](LayerWeights& layer) -> Slot { return &layer.key_bias; }},
    {Role::kValueBias, [](LayerWeights& layer) -> Slot { return &layer.value_bias; }},
    {Role::kAttentionOutputBias, [](LayerWeights& layer) -> Slot { return &layer.attention_output_bias; }},
    {Role::kQueryNorm, [](LayerWeights& layer) -> Slot { return &layer.query_norm.weight; }},
    {Role::kKeyNorm, [](LayerWeights& layer) -> Slot { return &layer.key_norm.weight; }},
    {Role::kQueryNormBias, [](LayerWeights& layer) -> Slot { return &layer.query_norm.bias; }},
    {Role::kKeyNormBias, [](LayerWeights& layer) -> Slot { return &layer.key_norm.bias; }},
    {Role::kOutputGate, [](LayerWeights& layer) -> Slot { return &layer.output_gate; }},
    {Role::kAttendedNorm, [](LayerWeights& layer) -> Slot { return &layer.attended_norm; }},
    {Role::kInnerNorm, [](LayerWeights& layer) -> Slot { return &layer.ffn.inner_norm; }},
    {Role::kXieluPositive, [](LayerWeights& layer) -> Slot { return &layer.ffn.xielu[0]; }},
    {Role::kXieluNegative, [](LayerWeights& layer) -> Slot { return &layer.ffn.xielu[1]; }},
    {Role::kXieluBeta, [](LayerWeights& layer) -> Slot { return &layer.ffn.xielu[2]; }},
    {Role::kXieluEps, [](LayerWeights& layer) -> Slot { return &layer.ffn.xielu[3]; }},
    {Role::kFfnNorm, [](LayerWeights& layer) -> Slot { return &layer.ffn_norm.weight; }},
    {Role::kFfnNormBias, [](LayerWeights& layer) -> Slot { return &layer.ffn_norm.bias; }},
    {Role::kFfnPostNorm, [](LayerWeights& layer) -> Slot { return &layer.ffn_post_norm.weight; }},
    {Role::kGate, [](LayerWeights& layer) -> Slot { return &layer.ffn.gate; }},
    {Role::kUp, [](LayerWeights& layer) -> Slot { return &layer.ffn.up; }},
    {Role::kDown, [](LayerWeights& layer) -> Slot { return &layer.ffn.down; }},
    {Role::kGateBias, [](LayerWeights& layer) -> Slot { return &layer.ffn.gate_bias; }},
    {Role::kUpBias, [](LayerWeights& layer) -> Slot { return &layer.ffn.up_bias; }},
    {Role::kDownBias, [](LayerWeights& layer) -> Slot { return &layer.ffn.down_bias; }},
    {Role::kRouter, [](LayerWeights& layer) -> Slot { return &layer.router; }},
    {Role::kScoreBias, [](LayerWeights& layer) -> Slot { return &layer.score_bias; }},
    {Role::kSharedGate, [](LayerWeights& layer) -> Slot { return &layer.shared.gate; }},
    {Role::kSharedUp, [](LayerWeights& layer) -> Slot { return &layer.shared.up; }},
    {Role::kSharedDown, [](LayerWeights& layer) -> Slot { return &layer.shared.down; }},
    {Role::kSharedExpertGate, [](LayerWeights& layer) -> Slot { return &layer.shared_gate; }},
    {Role::kAttentionSinks, [](LayerWeights& layer) -> Slot { return &layer.sinks; }},
    {Role::kRouterBias, [](LayerWeights& layer) -> Slot { return &layer.router_bias; }},
    {Role::kQueryCompression, [](LayerWeights& layer) -> Slot { return &layer.latent.query_compression; }},
    {Role::kQueryCompressionBias,
     [](LayerWeights& layer) -> Slot { return &layer.latent.query_compression_bias; }},
    {Role::kQueryCompressionNorm, [](LayerWeights& layer) -> Slot { return &layer.latent.query_norm; }},
    {Role::kQueryExpansion, [](LayerWeights& layer) -> Slot { return &layer.latent.query_expansion; }},
    {Role::kLatentCompression, [](LayerWeights& layer) -> Slot { return &layer.latent.compression; }},
    {Role::kLatentCompressionBias,
     [](LayerWeights& layer) -> Slot { return &layer.latent.compression_bias; }},
    {Role::kLatentNorm, [](LayerWeights& layer) -> Slot { return &layer.latent.norm; }},
    {Role::kLatentKeyExpansion, [](LayerWeights& layer) -> Slot { return &layer.latent.keys; }},
    {Role::kLatentValueExpansion, [](LayerWeights& layer) -> Slot { return &layer.latent.values; }},
    {Role::kStateInput, [](LayerWeights& layer) -> Slot { return &layer.state.input; }},
    {Role::kStateInputBias, [](LayerWeights& layer) -> Slot { return &layer.state.input_bias; }},
    {Role::kStateQueryKeyValue, [](LayerWeights& layer) -> Slot { return &layer.state.query_key_value; }},
    {Role::kStateGate, [](LayerWeights& layer) -> Slot { return &layer.state.gate; }},
    {Role::kStateStep, [](LayerWeights& layer) -> Slot { return &layer.state.step; }},
    {Role::kStateBeta, [](LayerWeights& layer) -> Slot { return &layer.state.beta; }},
    {Role::kStateStepBeta, [](LayerWeights& layer) -> Slot { return &layer.state.step_beta; }},
    {Role::kStateConvolution, [](LayerWeights& layer) -> Slot { return &layer.state.convolution; }},
    {Role::kStateConvolutionBias, [](LayerWeights& layer) -> Slot { return &layer.state.convolution_bias; }},
    {Role::kStateQueryConvolution,
     [](LayerWeights& layer) -> Slot { return &layer.state.query_convolution; }},
    {Role::kStateKeyConvolution, [](LayerWeights& layer) -> Slot { return &layer.state.key_convolution; }},
    {Role::kStateValueConvolution,
     [](LayerWeights& layer) -> Slot { return &layer.state.value_convolution; }},
    {Role::kStateSelection, [](LayerWeights& layer) -> Slot { return &layer.state.selection; }},
    {Role::kStateStepExpansion, [](LayerWeights& layer) -> Slot { return &layer.state.step_expansion; }},
    {Role::kStateGateExpansion, [](LayerWeights& layer) -> Slot { return &layer.state.gate_expansion; }},
    {Role::kStateStepBias, [](LayerWeights& layer) -> Slot { return &layer.state.step_bias; }},
    {Role::kStateDecay, [](LayerWeights& layer) -> Slot { return &layer.state.decay; }},
    {Role::kStateSkip, [](LayerWeights& layer) -> Slot { return &layer.state.skip; }},
    {Role::kStateStepNorm, [](LayerWeights& layer) -> Slot { return &layer.state.step_norm; }},
    {Role::kStateBNorm, [](LayerWeights& layer) -> Slot { return &layer.state.b_norm; }},
    {Role::kStateCNorm, [](LayerWeights& layer) -> Slot { return &layer.state.c_norm; }},
    {Role::kStateNorm, [](LayerWeights& layer) -> Slot { return &layer.state.norm; }},
    {Role::kStateOutput, [](LayerWeights& layer) -> Slot { return &layer.state.output; }},
    {Role::kStateOutputBias, [](LayerWeights& layer) -> Slot { return &layer.state.output_bias; }},
};

struct FusedRow {
  Role role;
  Slot (*slot)(Fused& fused);
};
constexpr FusedRow kFused[] = {
    {Role::kQueryKeyValue, [](Fused& fused) -> Slot { return &fused.qkv; }},
    {Role::kQueryKeyValueBias, [](Fused& fused) -> Slot { return &fused.qkv_bias; }},
    {Role::kLatentExpansion, [](Fused& fused) -> Slot { return &fused.latent_expansion; }},
    {Role::kGateUp, [](Fused& fused) -> Slot { return &fused.gate_up; }},
    {Role::kGateUpBias, [](Fused& fused) -> Slot { return &fused.gate_up_bias; }},
    {Role::kSharedGateUp, [](Fused& fused) -> Slot { return &fused.shared_gate_up; }},
};

template <std::size_t kSize, class Row, class Weights>
Slot find(const Row (&rows)[kSize], Role role, Weights& weights) {
  for (const Row& row : rows)
    if (row.role == role) return row.slot(weights);
  return {};
}

}  // namespace

Slot slot_of(ModelWeights& weights, Role role) {
  return find(kEnds, role, weights);
}

Slot slot_of(LayerWeights& layer, Fused& fused, Role role) {
  const Slot slot = find(kFused, role, fused);
  return std::holds_alternative<std::monostate>(slot) ? find(kLayers, role, layer) : slot;
}

}  // namespace plimsoll::engine
