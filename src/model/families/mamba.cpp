// SPDX-License-Identifier: Apache-2.0
// Mamba, Falcon-Mamba and Mamba 2: a state in every layer, no attention, no feed-forward. Source:
// transformers' MambaConfig, FalconMambaConfig, Mamba2Config.
#include <algorithm>
#include <utility>

#include "model/families/families.h"
#include "model/families/renames.h"
#include "model/families/states.h"

namespace plimsoll::model {
namespace {

ModelSpec finish(ModelSpec spec, const Mamba& mamba) {
  spec.rope.kind = RopeKind::kNone;
  spec.rope.rotary_dim = 0;
  Layer layer{state_of(mamba), {}};
  layer.ffn.kind = FfnKind::kNone;
  layer.ffn.activation = spec.layers.front().ffn.activation;  // behind the convolution
  spec.layers.assign(spec.layers.size(), layer);
  write_decoder(
      spec, {.extras = [&](SpecWriter& writer, const Layer&, int) { write_mamba(writer, mamba, "mixer."); },
             .norms = [](SpecWriter& writer, const Layer&,
                         int) { writer.norm_as(Role::kAttentionNorm, "norm", writer.width()); }});
  rename_weights(spec, {{"model.layers.", "backbone.layers."},
                        {"model.embed_tokens.", "backbone.embeddings."},
                        {"model.norm.", "backbone.norm_f."}});
  spec.has_file_names = true;
  return spec;
}

// Attention's figures are no part of these models; the defaults stand in for them.
DecoderDefaults defaults_of(int hidden_size, int num_layers, std::int64_t vocab_size, bool ties) {
  return {.norm_eps = 1e-5,
          .context_tokens = 0,  // no length is declared
          .ties_embeddings = ties,
          .head_dim = 64,
          .hidden_size = hidden_size,
          .num_layers = num_layers,
          .q_heads = 1,
          .vocab_size = vocab_size,
          .has_class_defaults = true};
}

void read_common(KeyReader& keys, int hidden_size, Mamba& mamba) {
  mamba.inner = static_cast<std::int64_t>(std::min(keys.positive("expand", 2.0), 64.0) * hidden_size);
  mamba.kernel = keys.integer("conv_kernel", 1, kMaxKernel, 4);
  mamba.has_bias = mamba.has_output_bias = keys.flag("use_bias", false);
  mamba.has_convolution_bias = keys.flag("use_conv_bias", true);
}

}  // namespace

ModelSpec mamba_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, defaults_of(768, 32, 50'280, true));
  Mamba mamba;
  read_common(keys, spec.hidden_size, mamba);
  mamba.inner = keys.integer("intermediate_size", 1, kMaxWidth * 64, mamba.inner);
  mamba.states = keys.integer("state_size", 1, kMaxWidth, 16);
  mamba.time_rank = read_time_rank(keys, "time_step_rank", spec.hidden_size);
  return finish(std::move(spec), mamba);
}

ModelSpec falcon_mamba_from_config(KeyReader& keys) {
  ModelSpec spec = mamba_from_config(keys);
  add_trait(spec, Trait::kUnknown);  // step, B and C are normalized without weights
  return spec;
}

ModelSpec mamba2_from_config(KeyReader& keys) {
  DecoderDefaults defaults = defaults_of(4096, 64, 32'768, false);
  defaults.q_heads = 128;
  ModelSpec spec = read_config_decoder(keys, defaults);
  Mamba mamba;
  read_common(keys, spec.hidden_size, mamba);
  mamba.states = keys.integer("state_size", 1, kMaxWidth, 128);
  mamba.heads = keys.count("num_heads", kMaxHeads, 128);
  mamba.groups = keys.count("n_groups", kMaxHeads, 8);
  read_step_limit(keys, mamba);
  return finish(std::move(spec), mamba);
}

}  // namespace plimsoll::model
