// SPDX-License-Identifier: Apache-2.0
// Zamba and Zamba 2: Mamba layers, some of which also run a transformer block that reads the hidden state
// beside the embedding. The blocks' weights are shared by all such layers; each keeps keys and values of its
// own. Source: transformers' ZambaConfig and Zamba2Config.
#include <algorithm>
#include <string>
#include <utility>

#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

using Group = WeightGroup;

// Zamba's Mamba 1 is split into heads, each with projections of its own.
void write_headed_mamba(SpecWriter& writer, const Mamba& mamba, std::int64_t heads, const std::string& at) {
  const std::int64_t width = writer.width(), part = mamba.inner / heads;
  writer.add(Group::kState, at + "conv1d.weight", {mamba.inner, 1, mamba.kernel});
  if (mamba.has_convolution_bias) writer.add(Group::kState, at + "conv1d.bias", {mamba.inner});
  writer.linear(Group::kState, at + "in_proj", 2 * mamba.inner, width, mamba.has_bias);
  writer.add(Group::kState, at + "x_proj_weight", {heads, mamba.time_rank + 2 * mamba.states, part});
  writer.add(Group::kState, at + "dt_proj_weight", {heads, part, mamba.time_rank});
  writer.add(Group::kState, at + "dt_proj_bias", {heads, part});
  writer.add(Group::kState, at + "A_log", {heads, part, mamba.states});
  writer.add(Group::kState, at + "D", {heads, part});
  writer.linear(Group::kState, at + "out_proj", width, mamba.inner, mamba.has_output_bias);
}

struct Zamba {
  ModelSpec spec;
  Mamba mamba;
  std::int64_t mamba_heads = 0;  // of Zamba's Mamba 1; 0: Mamba 2
  std::vector<bool> is_hybrid = {};
  std::size_t blocks = 1;         // shared transformer blocks, taken in turn
  std::int64_t adapter_rank = 0;  // low-rank additions of each use of a block; 0: none
  bool adapts_attention = false;
  bool has_bias = false;
};

void write_adapters(SpecWriter& writer, const Zamba& zamba, std::size_t block, std::int64_t inner) {
  const std::int64_t wide = 2 * writer.width(), rank = zamba.adapter_rank;
  std::size_t use = 0;
  for (const bool is_hybrid : zamba.is_hybrid) {
    if (!is_hybrid || use++ % zamba.blocks != block) continue;
    const std::string slot = "_list." + std::to_string(use - 1);
    const auto pair = [&](Group group, const std::string& name, std::int64_t in, std::int64_t out) {
      writer.linear(group, name + slot + ".0", rank, in);
      writer.linear(group, name + slot + ".1", out, rank);
    };
    pair(Group::kFfn, "shared_transformer.feed_forward.gate_up_proj_adapter", writer.width(), 2 * inner);
    if (zamba.adapts_attention)
      for (const char* name : {"q", "k", "v"})
        pair(Group::kAttention, std::string("shared_transformer.self_attn.linear_") + name + "_adapter", wide,
             wide);
  }
}

void write_block(SpecWriter& writer, const Zamba& zamba, const Layer& layer, int index, std::size_t block) {
  const bool is_first = zamba.mamba_heads > 0;
  const std::string name = is_first ? "shared_transf." : "shared_transformer.";
  const std::int64_t width = writer.width(), inner = layer.ffn.intermediate_size;
  writer.enter("model.layers." + std::to_string(index) + "." + name, index);
  writer.norm("input_layernorm", 2 * width);
  write_attention(writer, std::get<Attention>(layer.mixer), 2 * width, width);
  writer.norm("pre_ff_layernorm", width);
  if (is_first) {
    write_gated(writer, Group::kFfn, "feed_forward.", inner);
  } else {
    writer.linear(Group::kFfn, "feed_forward.gate_up_proj", 2 * inner, width, zamba.has_bias);
    writer.linear(Group::kFfn, "feed_forward.down_proj", width, inner, zamba.has_bias);
  }
  enter_layer(writer, index);
  if (zamba.adapter_rank > 0) write_adapters(writer, zamba, block, inner);
}

void write_model(Zamba& zamba) {
  SpecWriter writer(zamba.spec);
  write_embedding(writer);
  const std::vector<Layer> layers = zamba.spec.layers;
  std::size_t uses = 0;
  for (int i = 0; i < static_cast<int>(layers.size()); ++i) {
    const bool is_hybrid = zamba.is_hybrid[static_cast<std::size_t>(i)];
    enter_layer(writer, i);
    if (is_hybrid) {
      // transformers shares the blocks only where it ties the head, too.
      if (uses < zamba.blocks || !zamba.spec.ties_embeddings)
        write_block(writer, zamba, layers[static_cast<std::size_t>(i)], i, uses % zamba.blocks);
      ++uses;
      writer.linear(Group::kAttention, "linear", writer.width(), writer.width());
    }
    const std::string at = is_hybrid ? "mamba_decoder." : "";
    writer.norm(at + "input_layernorm", writer.width());
    if (zamba.mamba_heads > 0)
      write_headed_mamba(writer, zamba.mamba, zamba.mamba_heads, at + "mamba.");
    else
      write_mamba(writer, zamba.mamba, at + "mamba.");
  }
  write_head(writer);
  rename_weights(zamba.spec, {{"model.norm.", "model.final_layernorm."}});
  zamba.spec.has_file_names = true;
}

// Layers called "hybrid" attend and scan; the others only scan.
void set_layers(KeyReader& keys, std::vector<std::string> words, Zamba& zamba) {
  ModelSpec& spec = zamba.spec;
  const State state = state_of(zamba.mamba);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    Layer& layer = spec.layers[i];
    const bool is_hybrid = words[i] == "hybrid";
    if (!is_hybrid && words[i] != "mamba" && words[i] != "linear_attention")
      keys.add_error(ErrorCode::kUnsupported, "layers_block_type",
                     "reading the model: a layer is neither hybrid nor mamba");
    zamba.is_hybrid.push_back(is_hybrid);
    if (is_hybrid) {
      layer.side_states.push_back(state);
    } else {
      layer.mixer = state;
      layer.ffn = {.kind = FfnKind::kNone};
    }
  }
}

// Attention reads twice the width: the hidden state and the embedding.
void widen_attention(KeyReader& keys, bool takes_head_dim, bool uses_rope, ModelSpec& spec) {
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.head_dim = std::max(1, 2 * spec.hidden_size / attention.q_heads);
    if (takes_head_dim)
      attention.head_dim = keys.count("attention_head_dim", kMaxHeadDim, attention.head_dim);
    attention.uses_rope = uses_rope;
  });
  add_trait(spec, Trait::kOwnAttention);
  add_trait(spec, Trait::kUnknown);
}

DecoderDefaults defaults_of(int hidden_size, int intermediate_size, int num_layers, int heads) {
  return {.norm_eps = 1e-5,
          .context_tokens = 4096,
          .ties_embeddings = true,
          .hidden_size = hidden_size,
          .intermediate_size = intermediate_size,
          .num_layers = num_layers,
          .q_heads = heads,
          .has_class_defaults = true};
}

}  // namespace

ModelSpec zamba_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(3712, 14'848, 76, 16);
  defaults.kv_heads = 16;
  Zamba zamba{read_config_decoder(keys, defaults), {}};
  ModelSpec& spec = zamba.spec;
  zamba.mamba = {.states = keys.integer("mamba_d_state", 1, kMaxWidth, 16),
                 .kernel = keys.integer("mamba_d_conv", 1, kMaxKernel, 4),
                 .time_rank = read_time_rank(keys, "mamba_dt_rank", spec.hidden_size),
                 .has_convolution_bias = keys.flag("mamba_conv_bias", true)};
  zamba.mamba.has_bias = zamba.mamba.has_output_bias = keys.flag("mamba_proj_bias", false);
  zamba.mamba.inner = keys.integer("mamba_expand", 1, 64, 2) * spec.hidden_size;
  zamba.mamba_heads = keys.integer("n_mamba_heads", 1, kMaxHeads, 2);
  auto words = read_layer_words(keys, "layer_types", spec.layers.size());
  const auto period = keys.integer("attn_layer_period", 1, kMaxLayers, 6);
  const auto offset = keys.integer("attn_layer_offset", 0, kMaxLayers, 4);
  for (std::size_t i = words.size(); i < spec.layers.size(); ++i) {
    const bool is_hybrid = i == 2 || (i > 2 && static_cast<std::int64_t>(i - 3) % period == offset);
    words.emplace_back(is_hybrid ? "hybrid" : "mamba");
  }
  widen_attention(keys, true, false, spec);
  set_layers(keys, std::move(words), zamba);
  write_model(zamba);
  return std::move(spec);
}

ModelSpec zamba2_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(2560, 0, 54, 32);
  defaults.derives_intermediate_size = true;
  defaults.intermediate_size = static_cast<int>(4 * keys.integer("hidden_size", 1, kMaxWidth / 4, 2560));
  Zamba zamba{read_config_decoder(keys, defaults), {}};
  ModelSpec& spec = zamba.spec;
  zamba.has_bias = keys.flag("add_bias_linear", false);
  zamba.mamba = {.inner = keys.integer("mamba_expand", 1, 64, 2) * spec.hidden_size,
                 .states = keys.integer("mamba_d_state", 1, kMaxWidth, 64),
                 .kernel = keys.integer("mamba_d_conv", 1, kMaxKernel, 4),
                 .heads = keys.count("n_mamba_heads", kMaxHeads, 8),
                 .groups = keys.count("mamba_ngroups", kMaxHeads, 1),
                 .has_bias = zamba.has_bias,
                 .has_output_bias = zamba.has_bias,
                 .chunk_tokens = read_chunk(keys, 256)};
  zamba.blocks = static_cast<std::size_t>(keys.integer("num_mem_blocks", 1, kMaxLayers, 1));
  zamba.adapter_rank = keys.integer("adapter_rank", 1, kMaxWidth, 128);
  zamba.adapts_attention = keys.flag("use_shared_attention_adapter", false);
  auto words = read_layer_words(keys, "layer_types", spec.layers.size());
  // Without a list: the published pattern of 54 layers.
  for (std::size_t i = words.size(); i < spec.layers.size(); ++i) {
    const bool is_hybrid = (i > 0 && i < 43 && i % 6 == 0) || i == 47 || i == 51;
    words.emplace_back(is_hybrid ? "hybrid" : "mamba");
  }
  widen_attention(keys, false, keys.flag("use_mem_rope", false), spec);
  set_layers(keys, std::move(words), zamba);
  write_model(zamba);
  return std::move(spec);
}

}  // namespace plimsoll::model
