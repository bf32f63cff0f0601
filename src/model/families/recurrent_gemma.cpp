// SPDX-License-Identifier: Apache-2.0
// RecurrentGemma (Griffin): gated linear recurrences, two for each layer of local attention. Source:
// transformers' RecurrentGemmaConfig.
#include <utility>

#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

struct Recurrence {
  std::int64_t width = 0, heads = 1, kernel = 4;
};

void write_recurrence(SpecWriter& writer, const Recurrence& recurrence) {
  const std::int64_t lru = recurrence.width, heads = recurrence.heads, block = lru / heads;
  writer.linear(Group::kState, "temporal_block.linear_y", lru, writer.width(), true);
  writer.linear(Group::kState, "temporal_block.linear_x", lru, writer.width(), true);
  writer.linear(Group::kState, "temporal_block.linear_out", writer.width(), lru, true);
  writer.add(Group::kState, "temporal_block.conv_1d.weight", {lru, 1, recurrence.kernel});
  writer.add(Group::kState, "temporal_block.conv_1d.bias", {lru});
  writer.add(Group::kState, "temporal_block.rg_lru.recurrent_param", {lru});
  for (const char* gate : {"temporal_block.rg_lru.input_gate_", "temporal_block.rg_lru.recurrent_gate_"}) {
    writer.add(Group::kState, std::string(gate) + "weight", {heads, block, block});
    writer.add(Group::kState, std::string(gate) + "bias", {heads, block});
  }
}

// The pattern of block_types over and over; true for layers that recur.
std::vector<bool> read_pattern(KeyReader& keys, std::size_t num_layers) {
  const Json& pattern = keys["block_types"];
  std::vector<bool> recurs(num_layers);
  for (std::size_t i = 0; i < num_layers; ++i) {
    if (!pattern.is_array() || pattern.size() == 0) {
      recurs[i] = i % 3 != 2;
      continue;
    }
    const std::string* word = pattern.items()[i % pattern.size()].as_string();
    recurs[i] = word && *word == "recurrent";
  }
  return recurs;
}

}  // namespace

ModelSpec recurrent_gemma_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.context_tokens = 8192,
                                              .ties_embeddings = true,
                                              .hidden_size = 2560,
                                              .intermediate_size = 7680,
                                              .num_layers = 26,
                                              .q_heads = 10,
                                              .vocab_size = 256'000,
                                              .has_class_defaults = true});
  const Recurrence recurrence{.width = keys.integer("lru_width", 1, kMaxWidth, spec.hidden_size),
                              .heads = std::get<Attention>(spec.layers.front().mixer).q_heads,
                              .kernel = keys.integer("conv1d_width", 1, kMaxKernel, 4)};
  const std::int64_t window = keys.integer(
      keys.has("attention_window_size") ? "attention_window_size" : "sliding_window", 1, kMaxContext, 2048);
  const bool has_bias = keys.flag("attention_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.window_tokens = window;
    attention.has_qkv_bias = has_bias;
    attention.has_output_bias = true;
  });
  const std::vector<bool> recurs = read_pattern(keys, spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    Layer& layer = spec.layers[i];
    layer.ffn.has_bias = true;
    layer.ffn.intermediate_size = std::max(1, layer.ffn.intermediate_size / 2);  // stated for gate and up
    if (recurs[i])
      layer.mixer = State{.kind = StateKind::kLinear,
                          .heads = static_cast<int>(recurrence.heads),
                          .recurrent_elements = recurrence.width,
                          .convolution_elements = recurrence.width * (recurrence.kernel - 1),
                          .recurrent_dtype = DType::kF32};
  }
  for (const Trait trait : {Trait::kNormPlusOne, Trait::kSoftCap, Trait::kOwnScales, Trait::kUnknown})
    add_trait(spec, trait);
  write_decoder(spec, {.extras = [&](SpecWriter& writer, const Layer& layer, int) {
                  if (std::holds_alternative<State>(layer.mixer)) write_recurrence(writer, recurrence);
                }});
  rename_weights(spec, {{".mlp.", ".mlp_block."},
                        {".self_attn.", ".temporal_block."},
                        {".input_layernorm.", ".temporal_pre_norm."},
                        {".post_attention_layernorm.", ".channel_pre_norm."},
                        {"model.norm.", "model.final_norm."}});
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
