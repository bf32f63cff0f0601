// SPDX-License-Identifier: Apache-2.0
// The weights that a spec calls for, with their names in both formats.
#include <fmt/format.h>

#include <utility>

#include "model/model.h"

namespace plimsoll::model {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};

using Shape = std::vector<std::int64_t>;

class Lister {
 public:
  explicit Lister(const ModelSpec& spec) : spec_(spec) {}

  std::vector<Weight> list() {
    const std::int64_t width = spec_.hidden_size;
    add(Role::kTokenEmbedding, {spec_.vocab_size, width}, "model.embed_tokens.weight", "token_embd.weight");
    if (spec_.rope.rotary_dim > 0) {
      // GGUF stores llama3's scaling as one divisor per frequency; it is no parameter of the model.
      add(Role::kRopeFrequencies, {spec_.rope.rotary_dim / 2}, "", "rope_freqs.weight");
      weights_.back().is_optional = true;
      weights_.back().is_parameter = false;
    }
    for (layer_ = 0; layer_ < static_cast<int>(spec_.layers.size()); ++layer_)
      list_layer(spec_.layers[static_cast<std::size_t>(layer_)]);
    layer_ = -1;
    add(Role::kOutputNorm, {width}, "model.norm.weight", "output_norm.weight");
    if (!spec_.ties_embeddings)
      add(Role::kOutputHead, {spec_.vocab_size, width}, "lm_head.weight", "output.weight");
    return std::move(weights_);
  }

 private:
  void add(Role role, Shape shape, std::string_view hf_name, std::string_view gguf_name) {
    Weight weight;
    weight.role = role;
    weight.layer = layer_;
    weight.shape = std::move(shape);
    weight.hf_name = layer_ < 0 ? std::string(hf_name) : fmt::format("model.layers.{}.{}", layer_, hf_name);
    weight.gguf_name = layer_ < 0 ? std::string(gguf_name) : fmt::format("blk.{}.{}", layer_, gguf_name);
    weights_.push_back(std::move(weight));
  }

  void list_layer(const Layer& layer) {
    add(Role::kAttentionNorm, {spec_.hidden_size}, "input_layernorm.weight", "attn_norm.weight");
    std::visit(Overloaded{
                   [&](const Attention& attention) { list_attention(attention); },
                   // No family fills these yet; the one that does lists their weights with it.
                   [](const Latent&) {},
                   [](const State&) {},
                   [](const NoMixer&) {},
               },
               layer.mixer);
    add(Role::kFfnNorm, {spec_.hidden_size}, "post_attention_layernorm.weight", "ffn_norm.weight");
    if (layer.ffn.kind == FfnKind::kDense) list_ffn(layer.ffn);
  }

  void list_attention(const Attention& a) {
    const std::int64_t width = spec_.hidden_size;
    const std::int64_t q = std::int64_t{a.q_heads} * a.head_dim, kv = std::int64_t{a.kv_heads} * a.head_dim;
    add(Role::kQuery, {q, width}, "self_attn.q_proj.weight", "attn_q.weight");
    add(Role::kKey, {kv, width}, "self_attn.k_proj.weight", "attn_k.weight");
    add(Role::kValue, {kv, width}, "self_attn.v_proj.weight", "attn_v.weight");
    if (a.has_qkv_bias) {
      add(Role::kQueryBias, {q}, "self_attn.q_proj.bias", "attn_q.bias");
      add(Role::kKeyBias, {kv}, "self_attn.k_proj.bias", "attn_k.bias");
      add(Role::kValueBias, {kv}, "self_attn.v_proj.bias", "attn_v.bias");
    }
    if (a.has_qk_norm) {
      add(Role::kQueryNorm, {a.head_dim}, "self_attn.q_norm.weight", "attn_q_norm.weight");
      add(Role::kKeyNorm, {a.head_dim}, "self_attn.k_norm.weight", "attn_k_norm.weight");
    }
    add(Role::kAttentionOutput, {width, q}, "self_attn.o_proj.weight", "attn_output.weight");
    if (a.has_output_bias)
      add(Role::kAttentionOutputBias, {width}, "self_attn.o_proj.bias", "attn_output.bias");
  }

  void list_ffn(const Ffn& ffn) {
    const std::int64_t width = spec_.hidden_size, inner = ffn.intermediate_size;
    if (ffn.is_gated) add(Role::kGate, {inner, width}, "mlp.gate_proj.weight", "ffn_gate.weight");
    if (ffn.is_gated && ffn.has_bias) add(Role::kGateBias, {inner}, "mlp.gate_proj.bias", "ffn_gate.bias");
    add(Role::kUp, {inner, width}, "mlp.up_proj.weight", "ffn_up.weight");
    if (ffn.has_bias) add(Role::kUpBias, {inner}, "mlp.up_proj.bias", "ffn_up.bias");
    add(Role::kDown, {width, inner}, "mlp.down_proj.weight", "ffn_down.weight");
    if (ffn.has_bias) add(Role::kDownBias, {width}, "mlp.down_proj.bias", "ffn_down.bias");
  }

  const ModelSpec& spec_;
  int layer_ = -1;
  std::vector<Weight> weights_;
};

}  // namespace

std::int64_t Weight::elements() const {
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements *= dimension;
  return elements;
}

const artifact::Tensor* find_tensor(const artifact::Artifact& artifact, const Weight& weight) {
  const std::string& name = artifact.form() == artifact::Form::kGguf ? weight.gguf_name : weight.hf_name;
  return name.empty() ? nullptr : artifact.find(name);
}

std::vector<Weight> expected_weights(const ModelSpec& spec) {
  return Lister(spec).list();
}

std::int64_t count_parameters(const ModelSpec& spec) {
  std::int64_t total = 0;
  for (const Weight& weight : expected_weights(spec)) {
    if (!weight.is_parameter) continue;
    total += weight.elements();
  }
  return total;
}

}  // namespace plimsoll::model
