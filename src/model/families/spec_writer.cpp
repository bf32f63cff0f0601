// SPDX-License-Identifier: Apache-2.0
#include "model/families/spec_writer.h"

#include <fmt/format.h>

#include <utility>

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

struct RoleRow {
  Role role;
  Group group;
  std::string_view hf_name, gguf_name;
  bool is_linear;
};

// The plain decoder's names. Those of layers follow "model.layers.N." and "blk.N.".
constexpr RoleRow kRoles[] = {
    {Role::kTokenEmbedding, Group::kEmbedding, "model.embed_tokens.weight", "token_embd.weight", false},
    {Role::kPositionEmbedding, Group::kEmbedding, "model.embed_positions.weight", "position_embd.weight",
     false},
    {Role::kTokenTypeEmbedding, Group::kEmbedding, "", "token_types.weight", false},
    {Role::kEmbeddingNorm, Group::kNorm, "model.embed_norm.weight", "token_embd_norm.weight", false},
    {Role::kEmbeddingNormBias, Group::kNorm, "model.embed_norm.bias", "token_embd_norm.bias", false},
    {Role::kOutputNorm, Group::kNorm, "model.norm.weight", "output_norm.weight", false},
    {Role::kOutputNormBias, Group::kNorm, "model.norm.bias", "output_norm.bias", false},
    {Role::kOutputHead, Group::kHead, "lm_head.weight", "output.weight", false},
    {Role::kOutputHeadBias, Group::kHead, "lm_head.bias", "output.bias", false},
    {Role::kAttentionNorm, Group::kNorm, "input_layernorm.weight", "attn_norm.weight", false},
    {Role::kAttentionNormBias, Group::kNorm, "input_layernorm.bias", "attn_norm.bias", false},
    {Role::kAttentionPostNorm, Group::kNorm, "post_attention_layernorm.weight", "post_attention_norm.weight",
     false},
    {Role::kQueryKeyValue, Group::kAttention, "self_attn.qkv_proj.weight", "attn_qkv.weight", true},
    {Role::kQueryKeyValueBias, Group::kAttention, "self_attn.qkv_proj.bias", "attn_qkv.bias", false},
    {Role::kQuery, Group::kAttention, "self_attn.q_proj.weight", "attn_q.weight", true},
    {Role::kKey, Group::kAttention, "self_attn.k_proj.weight", "attn_k.weight", true},
    {Role::kValue, Group::kAttention, "self_attn.v_proj.weight", "attn_v.weight", true},
    {Role::kAttentionOutput, Group::kAttention, "self_attn.o_proj.weight", "attn_output.weight", true},
    {Role::kQueryBias, Group::kAttention, "self_attn.q_proj.bias", "attn_q.bias", false},
    {Role::kKeyBias, Group::kAttention, "self_attn.k_proj.bias", "attn_k.bias", false},
    {Role::kValueBias, Group::kAttention, "self_attn.v_proj.bias", "attn_v.bias", false},
    {Role::kAttentionOutputBias, Group::kAttention, "self_attn.o_proj.bias", "attn_output.bias", false},
    {Role::kQueryNorm, Group::kNorm, "self_attn.q_norm.weight", "attn_q_norm.weight", false},
    {Role::kKeyNorm, Group::kNorm, "self_attn.k_norm.weight", "attn_k_norm.weight", false},
    {Role::kQueryNormBias, Group::kNorm, "self_attn.q_norm.bias", "attn_q_norm.bias", false},
    {Role::kKeyNormBias, Group::kNorm, "self_attn.k_norm.bias", "attn_k_norm.bias", false},
    {Role::kOutputGate, Group::kAttention, "self_attn.gate_proj.weight", "attn_gate.weight", true},
    {Role::kAttendedNorm, Group::kNorm, "self_attn.attn_sub_norm.weight", "attn_sub_norm.weight", false},
    {Role::kInnerNorm, Group::kNorm, "mlp.ffn_sub_norm.weight", "ffn_sub_norm.weight", false},
    {Role::kXieluPositive, Group::kFfn, "mlp.act_fn.alpha_p", "", false},
    {Role::kXieluNegative, Group::kFfn, "mlp.act_fn.alpha_n", "", false},
    {Role::kXieluBeta, Group::kFfn, "mlp.act_fn.beta", "", false},
    {Role::kXieluEps, Group::kFfn, "mlp.act_fn.eps", "", false},
    {Role::kFfnNorm, Group::kNorm, "post_attention_layernorm.weight", "ffn_norm.weight", false},
    {Role::kFfnNormBias, Group::kNorm, "post_attention_layernorm.bias", "ffn_norm.bias", false},
    {Role::kFfnPostNorm, Group::kNorm, "post_feedforward_layernorm.weight", "post_ffw_norm.weight", false},
    {Role::kGateUp, Group::kFfn, "mlp.gate_up_proj.weight", "ffn_up.weight", true},
    {Role::kGateUpBias, Group::kFfn, "mlp.gate_up_proj.bias", "ffn_up.bias", false},
    {Role::kGate, Group::kFfn, "mlp.gate_proj.weight", "ffn_gate.weight", true},
    {Role::kUp, Group::kFfn, "mlp.up_proj.weight", "ffn_up.weight", true},
    {Role::kDown, Group::kFfn, "mlp.down_proj.weight", "ffn_down.weight", true},
    {Role::kGateBias, Group::kFfn, "mlp.gate_proj.bias", "ffn_gate.bias", false},
    {Role::kUpBias, Group::kFfn, "mlp.up_proj.bias", "ffn_up.bias", false},
    {Role::kDownBias, Group::kFfn, "mlp.down_proj.bias", "ffn_down.bias", false},
    {Role::kRouter, Group::kRouter, "mlp.gate.weight", "ffn_gate_inp.weight", false},
    {Role::kScoreBias, Group::kRouter, "mlp.gate.e_score_correction_bias", "exp_probs_b.bias", false},
    {Role::kExpertGate, Group::kExperts, "mlp.experts.{}.gate_proj.weight", "ffn_gate_exps.weight", true},
    {Role::kExpertUp, Group::kExperts, "mlp.experts.{}.up_proj.weight", "ffn_up_exps.weight", true},
    {Role::kExpertDown, Group::kExperts, "mlp.experts.{}.down_proj.weight", "ffn_down_exps.weight", true},
    {Role::kExpertGateUp, Group::kExperts, "mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight", true},
    {Role::kSharedGate, Group::kSharedExperts, "mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight",
     true},
    {Role::kSharedUp, Group::kSharedExperts, "mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight",
     true},
    {Role::kSharedDown, Group::kSharedExperts, "mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight",
     true},
    {Role::kSharedGateUp, Group::kSharedExperts, "mlp.shared_experts.gate_up_proj.weight",
     "ffn_gate_up_shexp.weight", true},
    {Role::kSharedExpertGate, Group::kSharedExperts, "mlp.shared_expert_gate.weight",
     "ffn_gate_inp_shexp.weight", false},
    {Role::kQueryCompression, Group::kAttention, "self_attn.q_a_proj.weight", "attn_q_a.weight", true},
    {Role::kQueryCompressionNorm, Group::kNorm, "self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight",
     false},
    {Role::kQueryCompressionBias, Group::kAttention, "self_attn.q_a_proj.bias", "attn_q_a.bias", false},
    {Role::kQueryExpansion, Group::kAttention, "self_attn.q_b_proj.weight", "attn_q_b.weight", true},
    {Role::kLatentCompression, Group::kAttention, "self_attn.kv_a_proj_with_mqa.weight",
     "attn_kv_a_mqa.weight", true},
    {Role::kLatentCompressionBias, Group::kAttention, "self_attn.kv_a_proj_with_mqa.bias",
     "attn_kv_a_mqa.bias", false},
    {Role::kLatentNorm, Group::kNorm, "self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight", false},
    {Role::kLatentExpansion, Group::kAttention, "self_attn.kv_b_proj.weight", "attn_kv_b.weight", true},
    {Role::kAttentionSinks, Group::kAttention, "self_attn.sinks", "attn_sinks.weight", false},
    {Role::kRouterBias, Group::kRouter, "mlp.gate.bias", "ffn_gate_inp.bias", false},
    {Role::kExpertGateUpBias, Group::kExperts, "mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias",
     false},
    {Role::kExpertDownBias, Group::kExperts, "mlp.experts.down_proj_bias", "ffn_down_exps.bias", false},
    {Role::kLatentKeyExpansion, Group::kAttention, "self_attn.k_b_proj.weight", "attn_k_b.weight", true},
    {Role::kLatentValueExpansion, Group::kAttention, "self_attn.v_b_proj.weight", "attn_v_b.weight", true},
    {Role::kStateInput, Group::kState, "in_proj.weight", "ssm_in.weight", true},
    {Role::kStateInputBias, Group::kState, "in_proj.bias", "ssm_in.bias", false},
    {Role::kStateQueryKeyValue, Group::kState, "in_proj_qkv.weight", "attn_qkv.weight", true},
    {Role::kStateGate, Group::kState, "in_proj_z.weight", "attn_gate.weight", true},
    {Role::kStateStep, Group::kState, "in_proj_a.weight", "ssm_alpha.weight", true},
    {Role::kStateBeta, Group::kState, "in_proj_b.weight", "ssm_beta.weight", true},
    {Role::kStateStepBeta, Group::kState, "in_proj_ba.weight", "ssm_ba.weight", true},
    {Role::kStateConvolution, Group::kState, "conv1d.weight", "ssm_conv1d.weight", false},
    {Role::kStateConvolutionBias, Group::kState, "conv1d.bias", "ssm_conv1d.bias", false},
    {Role::kStateQueryConvolution, Group::kState, "q_conv1d.weight", "ssm_conv1d_q.weight", false},
    {Role::kStateKeyConvolution, Group::kState, "k_conv1d.weight", "ssm_conv1d_k.weight", false},
    {Role::kStateValueConvolution, Group::kState, "v_conv1d.weight", "ssm_conv1d_v.weight", false},
    {Role::kStateSelection, Group::kState, "x_proj.weight", "ssm_x.weight", true},
    {Role::kStateStepExpansion, Group::kState, "dt_proj.weight", "ssm_dt.weight", true},
    {Role::kStateGateExpansion, Group::kState, "g_b_proj.weight", "ssm_g_b.weight", true},
    {Role::kStateStepBias, Group::kState, "dt_bias", "ssm_dt.bias", false},
    {Role::kStateDecay, Group::kState, "A_log", "ssm_a", false},
    {Role::kStateSkip, Group::kState, "D", "ssm_d", false},
    {Role::kStateStepNorm, Group::kState, "dt_layernorm.weight", "ssm_dt_norm.weight", false},
    {Role::kStateBNorm, Group::kState, "b_layernorm.weight", "ssm_b_norm.weight", false},
    {Role::kStateCNorm, Group::kState, "c_layernorm.weight", "ssm_c_norm.weight", false},
    {Role::kStateNorm, Group::kState, "norm.weight", "ssm_norm.weight", false},
    {Role::kStateOutput, Group::kState, "out_proj.weight", "ssm_out.weight", true},
    {Role::kStateOutputBias, Group::kState, "out_proj.bias", "ssm_out.bias", false},
    {Role::kRopeFrequencies, Group::kOther, "", "rope_freqs.weight", false},
};

const RoleRow& row_of(Role role) {
  for (const RoleRow& row : kRoles)
    if (row.role == role) return row;
  PLIMSOLL_CHECK(false, "every role but kNone has a row");
  return kRoles[0];
}

}  // namespace

void SpecWriter::enter(std::string prefix, int layer) {
  prefix_ = std::move(prefix);
  layer_ = layer;
}

Weight& SpecWriter::add(WeightGroup group, std::string_view name, std::vector<std::int64_t> shape) {
  Weight weight;
  weight.group = forced_.value_or(group);
  weight.layer = layer_;
  weight.shape = std::move(shape);
  weight.hf_name = prefix_ + std::string(name);
  return spec_.weights.emplace_back(std::move(weight));
}

void SpecWriter::linear(WeightGroup group, std::string_view name, std::int64_t out, std::int64_t in,
                        bool has_bias) {
  add(group, std::string(name) + ".weight", {out, in}).is_linear = true;
  if (has_bias) add(group, std::string(name) + ".bias", {out});
}

void SpecWriter::linears(WeightGroup group, std::string_view name, std::int64_t out, std::int64_t in,
                         int copies) {
  Weight& weight = add(group, std::string(name) + ".weight", {out, in});
  weight.is_linear = true;
  weight.copies = copies;
}

void SpecWriter::norm(std::string_view name, std::int64_t width, bool has_bias) {
  add(Group::kNorm, std::string(name) + ".weight", {width});
  if (has_bias) add(Group::kNorm, std::string(name) + ".bias", {width});
}

Weight& SpecWriter::role(Role role, std::vector<std::int64_t> shape) {
  const RoleRow& row = row_of(role);
  Weight& weight = role_as(role, row.hf_name, std::move(shape));
  if (layer_ < 0) weight.hf_name = row.hf_name;
  return weight;
}

Weight& SpecWriter::role_as(Role role, std::string_view name, std::vector<std::int64_t> shape) {
  const RoleRow& row = row_of(role);
  Weight& weight = add(row.group, name, std::move(shape));
  weight.role = role;
  weight.is_linear = row.is_linear;
  weight.gguf_name =
      layer_ < 0 ? std::string(row.gguf_name) : fmt::format("blk.{}.{}", layer_, row.gguf_name);
  return weight;
}

void SpecWriter::linear_as(Role role, std::string_view name, std::int64_t out, std::int64_t in,
                           std::optional<Role> bias) {
  role_as(role, std::string(name) + ".weight", {out, in});
  if (bias) role_as(*bias, std::string(name) + ".bias", {out});
}

void SpecWriter::experts_as(Role role, std::string_view name, std::int64_t out, std::int64_t in, int copies) {
  role_as(role, std::string(name) + ".weight", {out, in}).copies = copies;
}

void SpecWriter::norm_as(Role role, std::string_view name, std::int64_t width, std::optional<Role> bias) {
  role_as(role, std::string(name) + ".weight", {width});
  if (bias) role_as(*bias, std::string(name) + ".bias", {width});
}

void write_attention(SpecWriter& writer, const Attention& attention) {
  write_attention(writer, attention, writer.width(), writer.width());
}

void write_attention(SpecWriter& writer, const Attention& a, std::int64_t input, std::int64_t output) {
  const std::int64_t q = std::int64_t{a.q_heads} * a.head_dim, k = std::int64_t{a.kv_heads} * a.head_dim;
  const std::int64_t v = std::int64_t{a.kv_heads} * a.value_dim();
  const std::int64_t q_rows = a.has_output_gate ? 2 * q : q;
  writer.role(Role::kQuery, {q_rows, input});
  writer.role(Role::kKey, {k, input});
  writer.role(Role::kValue, {v, input});
  if (a.has_qkv_bias) {
    writer.role(Role::kQueryBias, {q_rows});
    writer.role(Role::kKeyBias, {k});
    writer.role(Role::kValueBias, {v});
  }
  if (a.has_qk_norm) {
    const auto shape_of = [&](int heads) -> std::vector<std::int64_t> {
      if (a.is_qk_norm_by_head) return {heads, a.head_dim};
      return {a.is_qk_norm_full_width ? std::int64_t{heads} * a.head_dim : a.head_dim};
    };
    writer.role(Role::kQueryNorm, shape_of(a.q_heads));
    writer.role(Role::kKeyNorm, shape_of(a.kv_heads));
  }
  writer.role(Role::kAttentionOutput, {output, std::int64_t{a.q_heads} * a.value_dim()});
  if (a.has_output_bias) writer.role(Role::kAttentionOutputBias, {output});
}

void write_latent(SpecWriter& writer, const Latent& latent, const LatentStyle& style) {
  const std::string at(style.prefix);
  const std::int64_t width = writer.width(), heads = latent.q_heads;
  const std::int64_t q_dim = std::int64_t{latent.qk_nope_head_dim} + latent.qk_rope_head_dim;
  if (latent.q_lora_rank > 0) {
    writer.linear_as(Role::kQueryCompression, at + "q_a_proj", latent.q_lora_rank, width,
                     role_if(style.has_q_bias, Role::kQueryCompressionBias));
    writer.norm_as(Role::kQueryCompressionNorm, at + "q_a_layernorm", latent.q_lora_rank);
    writer.linear_as(Role::kQueryExpansion, at + "q_b_proj", heads * q_dim, latent.q_lora_rank);
  } else {
    writer.linear_as(Role::kQuery, at + "q_proj", heads * q_dim, width);
  }
  writer.linear_as(Role::kLatentCompression, at + "kv_a_proj_with_mqa", latent.width(), width,
                   role_if(style.has_q_bias, Role::kLatentCompressionBias));
  writer.norm_as(Role::kLatentNorm, at + "kv_a_layernorm", latent.kv_lora_rank);
  if (style.has_halves) {
    const std::int64_t nope = latent.qk_nope_head_dim, rank = latent.kv_lora_rank;
    writer.role(Role::kLatentKeyExpansion, {rank, nope}).copies = latent.q_heads;
    writer.role(Role::kLatentValueExpansion, {latent.v_head_dim, rank}).copies = latent.q_heads;
  } else {
    writer.linear_as(Role::kLatentExpansion, at + "kv_b_proj",
                     heads * (std::int64_t{latent.qk_nope_head_dim} + latent.v_head_dim),
                     latent.kv_lora_rank);
  }
  writer.linear_as(Role::kAttentionOutput, at + "o_proj", width, heads * latent.v_head_dim,
                   role_if(style.has_output_bias, Role::kAttentionOutputBias));
  if (!latent.indexer || latent.indexer->heads == 0) return;
  const Indexer& indexer = *latent.indexer;
  writer.linear(Group::kIndexer, at + "indexer.wq_b", std::int64_t{indexer.heads} * indexer.head_dim,
                latent.q_lora_rank > 0 ? latent.q_lora_rank : width);
  writer.linear(Group::kIndexer, at + "indexer.wk", indexer.head_dim, width);
  writer.add(Group::kIndexer, at + "indexer.k_norm.weight", {indexer.head_dim});
  writer.add(Group::kIndexer, at + "indexer.k_norm.bias", {indexer.head_dim});
  writer.linear(Group::kIndexer, at + "indexer.weights_proj", indexer.heads, width);
}

void write_gated(SpecWriter& writer, WeightGroup group, std::string_view prefix, std::int64_t inner,
                 bool is_gated, bool has_bias) {
  const std::string at(prefix);
  if (is_gated) writer.linear(group, at + "gate_proj", inner, writer.width(), has_bias);
  writer.linear(group, at + "up_proj", inner, writer.width(), has_bias);
  writer.linear(group, at + "down_proj", writer.width(), inner, has_bias);
}

void write_ffn(SpecWriter& writer, const Ffn& ffn) {
  const std::int64_t width = writer.width(), inner = ffn.intermediate_size;
  if (ffn.is_gated) writer.role(Role::kGate, {inner, width});
  if (ffn.is_gated && ffn.has_bias) writer.role(Role::kGateBias, {inner});
  writer.role(Role::kUp, {inner, width});
  if (ffn.has_bias) writer.role(Role::kUpBias, {inner});
  writer.role(Role::kDown, {width, inner});
  if (ffn.has_bias) writer.role(Role::kDownBias, {width});
}

namespace {

// Biases have no role yet: an engine refuses shared experts that have some.
void write_shared_expert(SpecWriter& writer, const Ffn& ffn, const MoeStyle& style) {
  if (ffn.has_bias)
    return write_gated(writer, Group::kSharedExperts, style.shared, ffn.shared_intermediate_size,
                       ffn.is_gated, true);
  const std::int64_t width = writer.width(), inner = ffn.shared_intermediate_size;
  const std::string at(style.shared);
  if (ffn.is_gated) writer.linear_as(Role::kSharedGate, at + "gate_proj", inner, width);
  writer.linear_as(Role::kSharedUp, at + "up_proj", inner, width);
  writer.linear_as(Role::kSharedDown, at + "down_proj", width, inner);
}

}  // namespace

void write_moe(SpecWriter& writer, const Ffn& ffn, const MoeStyle& style) {
  const std::int64_t width = writer.width(), inner = ffn.expert_intermediate_size;
  // Routers are kept in 16 or 32 bit by every published quantization.
  writer.role_as(Role::kRouter, std::string(style.router) + ".weight", {ffn.experts, width});
  if (style.has_router_bias)
    writer.role_as(Role::kRouterBias, std::string(style.router) + ".bias", {ffn.experts});
  if (!style.score_bias.empty())
    writer.role_as(Role::kScoreBias, style.score_bias, {ffn.experts}).is_parameter = false;
  const std::string experts(style.experts);
  if (style.has_stacked_experts) {
    writer.role_as(Role::kExpertGateUp, experts + "gate_up_proj", {2 * inner, width}).copies = ffn.experts;
    writer.role_as(Role::kExpertDown, experts + "down_proj", {width, inner}).copies = ffn.experts;
  } else {
    if (ffn.is_gated)
      writer.experts_as(Role::kExpertGate, experts + "{}.gate_proj", inner, width, ffn.experts);
    writer.experts_as(Role::kExpertUp, experts + "{}.up_proj", inner, width, ffn.experts);
    writer.experts_as(Role::kExpertDown, experts + "{}.down_proj", width, inner, ffn.experts);
  }
  if (ffn.shared_intermediate_size > 0) write_shared_expert(writer, ffn, style);
  if (style.has_shared_gate) writer.role(Role::kSharedExpertGate, {1, width});
}

void write_any_ffn(SpecWriter& writer, const Ffn& ffn, const MoeStyle& style) {
  switch (ffn.kind) {
    case FfnKind::kDense:
      return write_ffn(writer, ffn);
    case FfnKind::kMoe:
      return write_moe(writer, ffn, style);
    case FfnKind::kNone:
      return;
  }
}

}  // namespace plimsoll::model
