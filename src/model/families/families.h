// SPDX-License-Identifier: Apache-2.0
// The table of families: one row per architecture, one file per family. Adding a family is a
// file, a row here and a fixture.
#pragma once

#include <span>
#include <string_view>

#include "artifact/artifact.h"
#include "model/families/spec_writer.h"
#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

/// A language model.
struct Family {
  std::string_view architecture;       // of config.json's architectures[]; empty: the row adds a model_type
  std::string_view model_type;         // of config.json or a wrapper's text_config
  std::string_view gguf_architecture;  // general.architecture; empty: no GGUF of it is read by this row
  ModelSpec (*from_config)(KeyReader&);
  ModelSpec (*from_gguf)(KeyReader&, const artifact::Artifact&);  // null with an empty gguf_architecture
};
std::span<const Family> families();

ModelSpec llama_from_config(KeyReader& keys);
ModelSpec llama_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec mistral_from_config(KeyReader& keys);
ModelSpec qwen2_from_config(KeyReader& keys);
ModelSpec qwen2_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec qwen3_from_config(KeyReader& keys);
ModelSpec qwen3_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec qwen2_moe_from_config(KeyReader& keys);
ModelSpec qwen3_moe_from_config(KeyReader& keys);
ModelSpec qwen3_moe_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec deepseek_v3_from_config(KeyReader& keys);
ModelSpec deepseek_v32_from_config(KeyReader& keys);
ModelSpec deepseek2_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec sarvam_mla_from_config(KeyReader& keys);
ModelSpec axk1_from_config(KeyReader& keys);
ModelSpec qwen3_next_from_config(KeyReader& keys);
ModelSpec qwen3_5_from_config(KeyReader& keys);
ModelSpec qwen3_5_moe_from_config(KeyReader& keys);
ModelSpec qwen4_exp_from_config(KeyReader& keys);
ModelSpec mamba_from_config(KeyReader& keys);
ModelSpec falcon_mamba_from_config(KeyReader& keys);
ModelSpec mamba2_from_config(KeyReader& keys);
ModelSpec bamba_from_config(KeyReader& keys);
ModelSpec falcon_h1_from_config(KeyReader& keys);
ModelSpec granitemoehybrid_from_config(KeyReader& keys);
ModelSpec jamba_from_config(KeyReader& keys);
ModelSpec zamba_from_config(KeyReader& keys);
ModelSpec zamba2_from_config(KeyReader& keys);
ModelSpec nemotron_h_from_config(KeyReader& keys);
ModelSpec lfm2_from_config(KeyReader& keys);
ModelSpec lfm2_moe_from_config(KeyReader& keys);
ModelSpec lfm3_from_config(KeyReader& keys);
ModelSpec recurrent_gemma_from_config(KeyReader& keys);
ModelSpec glm4_moe_from_config(KeyReader& keys);
ModelSpec glm4v_moe_from_config(KeyReader& keys);
ModelSpec glm4_moe_lite_from_config(KeyReader& keys);
ModelSpec glm_moe_dsa_from_config(KeyReader& keys);
ModelSpec dots1_from_config(KeyReader& keys);
ModelSpec deepseek_from_config(KeyReader& keys);
ModelSpec deepseek_v2_from_config(KeyReader& keys);
ModelSpec deepseek_v4_from_config(KeyReader& keys);
ModelSpec minimax_from_config(KeyReader& keys);
ModelSpec minimax_m2_from_config(KeyReader& keys);
ModelSpec minimax_m3_from_config(KeyReader& keys);
ModelSpec longcat_flash_from_config(KeyReader& keys);
ModelSpec kimi_linear_from_config(KeyReader& keys);
ModelSpec bailing_hybrid_from_config(KeyReader& keys);
ModelSpec mimo_v2_flash_from_config(KeyReader& keys);
ModelSpec step3p5_from_config(KeyReader& keys);
ModelSpec afmoe_from_config(KeyReader& keys);
ModelSpec flex_olmo_from_config(KeyReader& keys);
ModelSpec cohere_from_config(KeyReader& keys);
ModelSpec cohere2_from_config(KeyReader& keys);
ModelSpec cohere2_moe_from_config(KeyReader& keys);
ModelSpec gemma_from_config(KeyReader& keys);
ModelSpec gemma2_from_config(KeyReader& keys);
ModelSpec gemma3_from_config(KeyReader& keys);
ModelSpec gemma3_from_gguf(KeyReader& keys, const artifact::Artifact& artifact);
ModelSpec gemma3n_from_config(KeyReader& keys);
ModelSpec gemma4_from_config(KeyReader& keys);
ModelSpec vaultgemma_from_config(KeyReader& keys);
ModelSpec falcon_from_config(KeyReader& keys);
ModelSpec gpt2_from_config(KeyReader& keys);
ModelSpec gpt_neo_from_config(KeyReader& keys);
ModelSpec gpt_neox_from_config(KeyReader& keys);
ModelSpec gptj_from_config(KeyReader& keys);
ModelSpec codegen_from_config(KeyReader& keys);
ModelSpec gpt_bigcode_from_config(KeyReader& keys);
ModelSpec bloom_from_config(KeyReader& keys);
ModelSpec opt_from_config(KeyReader& keys);
ModelSpec xglm_from_config(KeyReader& keys);
ModelSpec mpt_from_config(KeyReader& keys);
ModelSpec persimmon_from_config(KeyReader& keys);
ModelSpec stablelm_from_config(KeyReader& keys);
ModelSpec phi_from_config(KeyReader& keys);
ModelSpec phi3_from_config(KeyReader& keys);
ModelSpec phi3v_from_config(KeyReader& keys);
ModelSpec phimoe_from_config(KeyReader& keys);
ModelSpec olmo_from_config(KeyReader& keys);
ModelSpec olmo2_from_config(KeyReader& keys);
ModelSpec olmo3_from_config(KeyReader& keys);
ModelSpec olmoe_from_config(KeyReader& keys);
ModelSpec arcee_from_config(KeyReader& keys);
ModelSpec apertus_from_config(KeyReader& keys);
ModelSpec bitnet_from_config(KeyReader& keys);
ModelSpec diffllama_from_config(KeyReader& keys);
ModelSpec exaone4_from_config(KeyReader& keys);
ModelSpec exaone_from_config(KeyReader& keys);
ModelSpec glm_from_config(KeyReader& keys);
ModelSpec glm4_from_config(KeyReader& keys);
ModelSpec granite_from_config(KeyReader& keys);
ModelSpec granitemoe_from_config(KeyReader& keys);
ModelSpec granitemoeshared_from_config(KeyReader& keys);
ModelSpec helium_from_config(KeyReader& keys);
ModelSpec nemotron_from_config(KeyReader& keys);
ModelSpec seed_oss_from_config(KeyReader& keys);
ModelSpec smollm3_from_config(KeyReader& keys);
ModelSpec starcoder2_from_config(KeyReader& keys);
ModelSpec mixtral_from_config(KeyReader& keys);
ModelSpec dbrx_from_config(KeyReader& keys);
ModelSpec jetmoe_from_config(KeyReader& keys);
ModelSpec doge_from_config(KeyReader& keys);
ModelSpec hunyuan_dense_from_config(KeyReader& keys);
ModelSpec hunyuan_moe_from_config(KeyReader& keys);
ModelSpec ernie45_from_config(KeyReader& keys);
ModelSpec ernie45_moe_from_config(KeyReader& keys);
ModelSpec ministral3_from_config(KeyReader& keys);
ModelSpec ministral_from_config(KeyReader& keys);
ModelSpec cwm_from_config(KeyReader& keys);
ModelSpec internlm3_from_config(KeyReader& keys);
ModelSpec baichuan_from_config(KeyReader& keys);
ModelSpec chatglm_from_config(KeyReader& keys);
ModelSpec internlm_from_config(KeyReader& keys);
ModelSpec internlm2_from_config(KeyReader& keys);
ModelSpec orion_from_config(KeyReader& keys);
ModelSpec qwen1_from_config(KeyReader& keys);
ModelSpec minicpm_from_config(KeyReader& keys);
ModelSpec mimo_from_config(KeyReader& keys);
ModelSpec nemotron_nas_from_config(KeyReader& keys);
ModelSpec gpt_oss_from_config(KeyReader& keys);
ModelSpec llama4_from_config(KeyReader& keys);
ModelSpec mllama_from_config(KeyReader& keys);
ModelSpec qwen2_vl_from_config(KeyReader& keys);
ModelSpec qwen2_omni_from_config(KeyReader& keys);
ModelSpec qwen3_vl_from_config(KeyReader& keys);
ModelSpec qwen3_vl_moe_from_config(KeyReader& keys);
ModelSpec qwen3_omni_moe_from_config(KeyReader& keys);
ModelSpec t5_from_config(KeyReader& keys);
ModelSpec mt5_from_config(KeyReader& keys);
ModelSpec umt5_from_config(KeyReader& keys);
ModelSpec bart_from_config(KeyReader& keys);
ModelSpec mbart_from_config(KeyReader& keys);
ModelSpec pegasus_from_config(KeyReader& keys);
ModelSpec blenderbot_from_config(KeyReader& keys);
ModelSpec marian_from_config(KeyReader& keys);
ModelSpec m2m_100_from_config(KeyReader& keys);
ModelSpec whisper_from_config(KeyReader& keys);
ModelSpec minicpm3_from_config(KeyReader& keys);
ModelSpec youtu_from_config(KeyReader& keys);
ModelSpec mistral4_from_config(KeyReader& keys);
ModelSpec exaone_moe_from_config(KeyReader& keys);
ModelSpec solar_open_from_config(KeyReader& keys);
ModelSpec mellum_from_config(KeyReader& keys);
ModelSpec hy_v3_from_config(KeyReader& keys);
ModelSpec laguna_from_config(KeyReader& keys);
ModelSpec sarvam_moe_from_config(KeyReader& keys);
ModelSpec nanochat_from_config(KeyReader& keys);
ModelSpec jais2_from_config(KeyReader& keys);
ModelSpec hyperclovax_from_config(KeyReader& keys);
ModelSpec granite_swa_from_config(KeyReader& keys);
ModelSpec granitemoe_swa_from_config(KeyReader& keys);
ModelSpec olmo_hybrid_from_config(KeyReader& keys);
ModelSpec openai_gpt_from_config(KeyReader& keys);
ModelSpec biogpt_from_config(KeyReader& keys);
ModelSpec bert_from_config(KeyReader& keys);
ModelSpec roberta_from_config(KeyReader& keys);
ModelSpec xlm_roberta_from_config(KeyReader& keys);
ModelSpec modernbert_from_config(KeyReader& keys);
ModelSpec glm4v_text_from_config(KeyReader& keys);
ModelSpec glm_ocr_text_from_config(KeyReader& keys);
ModelSpec paddleocr_vl_from_config(KeyReader& keys);
ModelSpec phi4_multimodal_from_config(KeyReader& keys);
ModelSpec phi4mm_from_config(KeyReader& keys);
ModelSpec minicpmv_from_config(KeyReader& keys);

/// Windows of Qwen 2, 3 and their mixtures: layer_types, or use_sliding_window from max_window_layers on.
void read_qwen_windows(KeyReader& keys, ModelSpec& spec);

}  // namespace plimsoll::model
