// SPDX-License-Identifier: Apache-2.0
// Qwen 3-Next, 3.5 and 3.6: three layers of gated delta nets, then one of gated attention; dense or mixtures
// with a gated shared expert; a prediction layer. Source: transformers' Qwen3NextConfig, Qwen3_5TextConfig
// and Qwen3_5MoeTextConfig; prediction layers as the published files hold them.
#include <string>
#include <utility>

#include "model/families/families.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

constexpr MoeStyle kMoeStyle{.shared = "mlp.shared_expert.", .has_shared_gate = true};

DecoderDefaults defaults_of(int hidden_size, int intermediate_size, int num_layers, int kv_heads,
                            std::int64_t vocab_size) {
  return {.context_tokens = 32'768,
          .head_dim = 256,
          .kv_heads = kv_heads,
          .hidden_size = hidden_size,
          .intermediate_size = intermediate_size,
          .num_layers = num_layers,
          .q_heads = 16,
          .vocab_size = vocab_size,
          .has_class_defaults = true,
          .turned_share = 0.25};
}

struct Hybrid {
  ModelSpec spec;
  DeltaNet net;
  Attention attention;  // of the layers that attend, also of prediction layers
  bool is_fused = false;
};

Hybrid read_hybrid(KeyReader& keys, const DecoderDefaults& defaults) {
  Hybrid hybrid{read_config_decoder(keys, defaults), read_delta_net(keys), {}};
  ModelSpec& spec = hybrid.spec;
  read_attention_bias(keys, spec);
  for_each_attention(spec, [](Attention& attention, std::size_t) {
    attention.has_qk_norm = attention.has_output_gate = true;
  });
  hybrid.attention = std::get<Attention>(spec.layers.front().mixer);
  set_state_layers(keys, state_of(hybrid.net), spec);
  spec.norm_adds_one = true;
  return hybrid;
}

void read_mixture(KeyReader& keys, const MoeDefaults& defaults, ModelSpec& spec) {
  Ffn moe = read_moe(keys, spec.layers.front().ffn, defaults);
  moe.shared_experts = 1;
  moe.shared_intermediate_size =
      static_cast<int>(keys.integer("shared_expert_intermediate_size", 1, kMaxWidth, 512));
  moe.router.is_normalized = true;
  set_moe_layers(keys, moe, spec);
}

// mtp.layers.N attend like the decoder's layers of attention and have its last feed-forward.
void write_mtp(KeyReader& keys, const Attention& attention, int count, ModelSpec& spec) {
  if (count == 0) return;
  const Layer layer{attention, spec.layers.back().ffn};
  SpecWriter writer(spec);
  writer.override_group(WeightGroup::kMtp);
  writer.enter("mtp.");
  const std::int64_t width = writer.width();
  writer.linear(WeightGroup::kMtp, "fc", width, 2 * width);
  for (const char* name : {"norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"}) writer.norm(name, width);
  if (keys.flag("mtp_use_dedicated_embeddings", false))
    writer.add(WeightGroup::kMtp, "embed_tokens.weight", {spec.vocab_size, width});
  const int first = static_cast<int>(spec.layers.size());
  for (int i = 0; i < count; ++i) {
    writer.enter("mtp.layers." + std::to_string(i) + ".", first + i);
    writer.norm("input_layernorm", width);
    writer.norm("post_attention_layernorm", width);
    write_attention(writer, attention);
    write_any_ffn(writer, layer.ffn, kMoeStyle);
    spec.mtp_layers.push_back(layer);
  }
}

ModelSpec finish(KeyReader& keys, Hybrid hybrid, int otherwise_mtp) {
  ModelSpec& spec = hybrid.spec;
  write_decoder(spec, {.moe = kMoeStyle, .extras = [&](SpecWriter& writer, const Layer& layer, int) {
                         if (std::holds_alternative<State>(layer.mixer))
                           write_delta_net(writer, hybrid.net, hybrid.is_fused);
                       }});
  const auto mtp = keys.integer("num_nextn_predict_layers", 0, kMaxMtpLayers, otherwise_mtp);
  write_mtp(keys, hybrid.attention, static_cast<int>(mtp), spec);
  return std::move(spec);
}

}  // namespace

ModelSpec qwen3_next_from_config(KeyReader& keys) {
  Hybrid hybrid = read_hybrid(keys, defaults_of(2048, 5632, 48, 2, 151'936));
  hybrid.is_fused = true;
  read_mixture(keys, {512, 10, 512}, hybrid.spec);
  const bool is_normalized = keys.flag("norm_topk_prob", true);
  for (Layer& layer : hybrid.spec.layers) layer.ffn.router.is_normalized = is_normalized;
  // Published configs don't mention the one prediction layer that their files hold.
  ModelSpec spec = finish(keys, std::move(hybrid), 1);
  spec.has_file_names = true;
  return spec;
}

ModelSpec qwen3_5_from_config(KeyReader& keys) {
  ModelSpec spec = finish(keys, read_hybrid(keys, defaults_of(4096, 12'288, 32, 4, 248'320)), 0);
  spec.has_file_names = !keys.is_nested();  // in a wrapper they stand under model.language_model
  return spec;
}

ModelSpec qwen3_5_moe_from_config(KeyReader& keys) {
  Hybrid hybrid = read_hybrid(keys, defaults_of(2048, 12'288, 40, 2, 248'320));
  read_mixture(keys, {256, 8, 512}, hybrid.spec);
  return finish(keys, std::move(hybrid), 0);  // files hold the experts of a layer as one tensor or as many
}

}  // namespace plimsoll::model
