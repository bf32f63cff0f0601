// SPDX-License-Identifier: Apache-2.0
// Llama 1 to 3.x and everything published in their shape. Source: transformers' LlamaConfig, llama.cpp's
// conversion.
#include "model/families/decoder.h"
#include "model/families/families.h"

namespace plimsoll::model {

ModelSpec llama_from_config(KeyReader& keys) {
  ModelSpec spec = read_config_decoder(keys, {.norm_eps = 1e-6, .context_tokens = 2048});
  const bool has_attention_bias = keys.flag("attention_bias", false);
  const bool has_ffn_bias = keys.flag("mlp_bias", false);
  for_each_attention(spec, [&](Attention& attention, std::size_t) {
    attention.has_qkv_bias = has_attention_bias;
    attention.has_output_bias = has_attention_bias;
  });
  for (Layer& layer : spec.layers) layer.ffn.has_bias = has_ffn_bias;
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

ModelSpec llama_from_gguf(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec = read_gguf_decoder(keys, artifact, Router{.is_normalized = true});
  if (spec.layers.back().ffn.kind == FfnKind::kMoe) {  // as Mixtral's files call themselves
    spec.architecture = "MixtralForCausalLM";
    spec.model_type = "mixtral";
  }
  spec.rope.interleaved = true;  // the conversion permutes the rows of q and k for llama.cpp's rope
  write_decoder(spec);
  spec.has_file_names = true;
  return spec;
}

}  // namespace plimsoll::model
