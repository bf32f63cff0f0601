// SPDX-License-Identifier: Apache-2.0
// Language models that stand only inside wrappers, or in one config with their towers: GLM 4.1V and GLM-OCR,
// PaddleOCR-VL, Phi 4 multimodal, MiniCPM-V. Source: transformers' Glm4vTextConfig, GlmOcrTextConfig,
// PaddleOCRTextConfig, Phi4MultimodalConfig; MiniCPM-V's as its published code has it.
#include <utility>

#include "model/families/families.h"
#include "model/families/parts.h"

namespace plimsoll::model {
namespace {

// Two norms on either side, gate and up as one matrix. No file has these names inside a wrapper.
ModelSpec finish_glm(ModelSpec spec, bool has_qkv_bias) {
  for_each_attention(spec, [&](Attention& attention, std::size_t) { attention.has_qkv_bias = has_qkv_bias; });
  add_trait(spec, Trait::kPostNorms);
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    writer.norm("post_self_attn_layernorm", writer.width());
    writer.norm("post_mlp_layernorm", writer.width());
    write_attention(writer, std::get<Attention>(layer.mixer));
    write_fused_ffn(writer, layer.ffn);
  });
  return spec;
}

}  // namespace

ModelSpec glm4v_text_from_config(KeyReader& keys) {
  return finish_glm(read_unchecked_decoder(keys, {.norm_eps = 1e-5,
                                                  .context_tokens = 32'768,
                                                  .kv_heads = 2,
                                                  .intermediate_size = 13'696,
                                                  .num_layers = 40,
                                                  .vocab_size = 151'552,
                                                  .has_class_defaults = true}),
                    true);
}

ModelSpec glm_ocr_text_from_config(KeyReader& keys) {
  return finish_glm(read_unchecked_decoder(keys, {.norm_eps = 1e-5,
                                                  .context_tokens = 131'072,
                                                  .kv_heads = 8,
                                                  .hidden_size = 1024,
                                                  .intermediate_size = 4096,
                                                  .num_layers = 16,
                                                  .q_heads = 16,
                                                  .vocab_size = 59'392,
                                                  .has_class_defaults = true}),
                    false);
}

// ERNIE 4.5's figures and weights, with sections of positions instead of pairs in turn.
ModelSpec paddleocr_vl_from_config(KeyReader& keys) {
  ModelSpec spec = ernie45_from_config(keys);
  add_trait(spec, Trait::kUnknown);
  spec.rope.interleaved = false;
  spec.has_file_names = false;
  return spec;
}

ModelSpec phi4_multimodal_from_config(KeyReader& keys) {
  ModelSpec spec = read_unchecked_decoder(keys, {.norm_eps = 1e-5,
                                                 .context_tokens = 131'072,
                                                 .kv_heads = 8,
                                                 .hidden_size = 3072,
                                                 .intermediate_size = 8192,
                                                 .vocab_size = 200'064,
                                                 .has_class_defaults = true});
  set_windows(spec, read_window(keys, 0));
  write_layers(spec, {}, [](SpecWriter& writer, const Layer& layer, int) {
    write_two_norms(writer);
    write_fused_attention(writer, std::get<Attention>(layer.mixer), "self_attn.qkv_proj", "self_attn.o_proj");
    write_fused_ffn(writer, layer.ffn);
  });
  return spec;
}

// The code of Phi-4-multimodal that came before transformers' class has adapters inside, which it does not
// declare in full: layers and KV are known, the total is not.
ModelSpec phi4mm_from_config(KeyReader& keys) {
  ModelSpec spec = phi4_multimodal_from_config(keys);
  spec.encoders.emplace_back("embd_layer");
  spec.has_all_weights = false;
  return spec;
}

// Its version says which language model it is built on. Files keep it under "llm.".
ModelSpec minicpmv_from_config(KeyReader& keys) {
  const double version = keys.positive("version", 2.0);
  const auto is = [&](double number) { return version > number - 0.01 && version < number + 0.01; };
  const bool is_llama = is(2.5), is_qwen2 = is(2.6), is_qwen3 = is(4.5);
  if (!is_llama && !is_qwen2 && !is_qwen3)
    keys.add_error(ErrorCode::kUnsupported, "version",
                   "reading the model: this version of MiniCPM-V is not known here");
  ModelSpec spec = is_qwen2   ? qwen2_from_config(keys)
                   : is_qwen3 ? qwen3_from_config(keys)
                              : llama_from_config(keys);
  spec.has_file_names = false;
  add_trait(spec, Trait::kUnknown);
  return spec;
}

}  // namespace plimsoll::model
