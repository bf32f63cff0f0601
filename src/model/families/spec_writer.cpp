// SPDX-License-Identifier: Apache-2.0
#include "model/families/spec_writer.h"

#include <fmt/format.h>

#include <array>
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
constexpr std::array<RoleRow, 22> kRoles{{
    {Role::kTokenEmbedding, Group::kEmbedding, "model.embed_tokens.weight", "token_embd.weight", false},
    {Role::kOutputNorm, Group::kNorm, "model.norm.weight", "output_norm.weight", false},
    {Role::kOutputHead, Group::kHead, "lm_head.weight", "output.weight", false},
    {Role::kAttentionNorm, Group::kNorm, "input_layernorm.weight", "attn_norm.weight", false},
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
    {Role::kFfnNorm, Group::kNorm, "post_attention_layernorm.weight", "ffn_norm.weight", false},
    {Role::kGate, Group::kFfn, "mlp.gate_proj.weight", "ffn_gate.weight", true},
    {Role::kUp, Group::kFfn, "mlp.up_proj.weight", "ffn_up.weight", true},
    {Role::kDown, Group::kFfn, "mlp.down_proj.weight", "ffn_down.weight", true},
    {Role::kGateBias, Group::kFfn, "mlp.gate_proj.bias", "ffn_gate.bias", false},
    {Role::kUpBias, Group::kFfn, "mlp.up_proj.bias", "ffn_up.bias", false},
    {Role::kDownBias, Group::kFfn, "mlp.down_proj.bias", "ffn_down.bias", false},
    {Role::kRopeFrequencies, Group::kOther, "", "rope_freqs.weight", false},
}};

const RoleRow& row_of(Role role) {
  for (const RoleRow& row : kRoles)
    if (row.role == role) return row;
  PLIMSOLL_CHECK(false, "every role but kNone has a row");
  return kRoles.front();
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

void SpecWriter::role(Role role, std::vector<std::int64_t> shape) {
  const RoleRow& row = row_of(role);
  Weight& weight = add(row.group, row.hf_name, std::move(shape));
  weight.role = role;
  weight.is_linear = row.is_linear;
  if (layer_ < 0) weight.hf_name = row.hf_name;
  weight.gguf_name =
      layer_ < 0 ? std::string(row.gguf_name) : fmt::format("blk.{}.{}", layer_, row.gguf_name);
}

void write_attention(SpecWriter& writer, const Attention& attention) {
  write_attention(writer, attention, writer.width(), writer.width());
}

void write_attention(SpecWriter& writer, const Attention& a, std::int64_t input, std::int64_t output) {
  const std::int64_t q = std::int64_t{a.q_heads} * a.head_dim, k = std::int64_t{a.kv_heads} * a.head_dim;
  const std::int64_t v = std::int64_t{a.kv_heads} * a.value_dim();
  writer.role(Role::kQuery, {q, input});
  writer.role(Role::kKey, {k, input});
  writer.role(Role::kValue, {v, input});
  if (a.has_qkv_bias) {
    writer.role(Role::kQueryBias, {q});
    writer.role(Role::kKeyBias, {k});
    writer.role(Role::kValueBias, {v});
  }
  if (a.has_qk_norm) {
    writer.role(Role::kQueryNorm, {a.head_dim});
    writer.role(Role::kKeyNorm, {a.head_dim});
  }
  writer.role(Role::kAttentionOutput, {output, std::int64_t{a.q_heads} * a.value_dim()});
  if (a.has_output_bias) writer.role(Role::kAttentionOutputBias, {output});
}

void write_latent(SpecWriter& writer, const Latent& latent, const LatentStyle& style) {
  const std::string at(style.prefix);
  const std::int64_t width = writer.width(), heads = latent.q_heads;
  const std::int64_t q_dim = std::int64_t{latent.qk_nope_head_dim} + latent.qk_rope_head_dim;
  if (latent.q_lora_rank > 0) {
    writer.linear(Group::kAttention, at + "q_a_proj", latent.q_lora_rank, width, style.has_q_bias);
    writer.norm(at + "q_a_layernorm", latent.q_lora_rank);
    writer.linear(Group::kAttention, at + "q_b_proj", heads * q_dim, latent.q_lora_rank);
  } else {
    writer.linear(Group::kAttention, at + "q_proj", heads * q_dim, width);
  }
  writer.linear(Group::kAttention, at + "kv_a_proj_with_mqa", latent.width(), width, style.has_q_bias);
  writer.norm(at + "kv_a_layernorm", latent.kv_lora_rank);
  writer.linear(Group::kAttention, at + "kv_b_proj",
                heads * (std::int64_t{latent.qk_nope_head_dim} + latent.v_head_dim), latent.kv_lora_rank);
  writer.linear(Group::kAttention, at + "o_proj", width, heads * latent.v_head_dim, style.has_output_bias);
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

void write_moe(SpecWriter& writer, const Ffn& ffn, const MoeStyle& style) {
  const std::int64_t width = writer.width(), inner = ffn.expert_intermediate_size;
  // Routers are kept in 16 or 32 bit by every published quantization.
  writer.add(Group::kRouter, std::string(style.router) + ".weight", {ffn.experts, width});
  if (style.has_router_bias) writer.add(Group::kRouter, std::string(style.router) + ".bias", {ffn.experts});
  if (!style.score_bias.empty())
    writer.add(Group::kRouter, style.score_bias, {ffn.experts}).is_parameter = false;
  const std::string experts(style.experts);
  if (ffn.is_gated) writer.linears(Group::kExperts, experts + "{}.gate_proj", inner, width, ffn.experts);
  writer.linears(Group::kExperts, experts + "{}.up_proj", inner, width, ffn.experts);
  writer.linears(Group::kExperts, experts + "{}.down_proj", width, inner, ffn.experts);
  if (ffn.shared_intermediate_size > 0)
    write_gated(writer, Group::kSharedExperts, style.shared, ffn.shared_intermediate_size, ffn.is_gated,
                ffn.has_bias);
  if (style.has_shared_gate) writer.add(Group::kSharedExperts, "mlp.shared_expert_gate.weight", {1, width});
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
