// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "model/families/towers.h"

namespace plimsoll::model {
namespace {

constexpr std::array kTowers{
    Tower{"llava", "llama", write_llava},
    Tower{"vipllava", "llama", write_vipllava},
    Tower{"video_llava", "llama", write_video_llava},
    Tower{"fuyu", "persimmon", write_fuyu},
    Tower{"llava_next", "llama", write_llava_next},
    Tower{"llava_next_video", "llama", write_llava_next},
    Tower{"llava_onevision", "qwen2", write_llava_next},
    Tower{"mistral3", "mistral", write_mistral3},
    Tower{"ministral3", "ministral3", write_mistral3},
    Tower{"gemma3", "gemma3_text", write_gemma3},
    Tower{"shieldgemma2", "gemma3_text", write_gemma3},
    Tower{"gemma4", "gemma4_text", write_gemma4},
    Tower{"paligemma", "gemma", write_paligemma},
    Tower{"aya_vision", "cohere2", write_aya_vision},
    Tower{"cohere2_vision", "cohere2", write_cohere2_vision},
    Tower{"idefics3", "llama", write_idefics3},
    Tower{"smolvlm", "llama", write_idefics3},
    Tower{"lfm2_vl", "lfm2", write_lfm2_vl},
    Tower{"minimax_m3_vl", "minimax_m3_vl_text", write_minimax_m3_vl},
    Tower{"qwen2_vl", "qwen2_vl_text", write_qwen2_vl},
    Tower{"qwen2_5_vl", "qwen2_5_vl_text", write_qwen2_5_vl},
    Tower{"qwen2_5_omni", "qwen2_5_omni_text", write_qwen2_5_omni},
    Tower{"qwen2_5_omni_thinker", "qwen2_5_omni_text", write_qwen2_5_omni},
    Tower{"qwen3_vl", "qwen3_vl_text", write_qwen3_vl},
    Tower{"qwen3_vl_moe", "qwen3_vl_moe_text", write_qwen3_vl},
    Tower{"qwen3_5", "qwen3_5_text", write_qwen3_5},
    Tower{"qwen3_5_moe", "qwen3_5_moe_text", write_qwen3_5},
    Tower{"qwen4_exp", "qwen4_exp_text", write_qwen3_5},
    Tower{"qwen3_omni_moe", "qwen3_omni_moe_text", write_qwen3_omni},
    Tower{"qwen3_omni_moe_thinker", "qwen3_omni_moe_text", write_qwen3_omni},
    Tower{"llama4", "llama4_text", write_llama4, true},
    Tower{"kimi_k25", "kimi_k2", write_kimi_k25},
    Tower{"internvl", "qwen2", write_internvl},
    Tower{"gemma3n", "gemma3n_text", write_gemma3n},
    Tower{"qwen2_audio", "qwen2", write_qwen2_audio, false, Tower::Ties::kNever},
    Tower{"voxtral", "llama", write_voxtral, false, Tower::Ties::kNever},
    Tower{"phi4_multimodal", "phi4_multimodal", write_phi4_multimodal},
    Tower{"granite_speech",
          "granite",
          write_granite_speech,
          false,
          Tower::Ties::kByWrapper,
          {"encoder_config", "projector_config"}},
    Tower{"blip-2", "opt", write_blip2, false, Tower::Ties::kByText, {"qformer_config"}},
    Tower{"glm4v", "glm4v_text", write_glm4v},
    Tower{"glm46v", "glm4v_text", write_glm4v},
    Tower{"glm4v_moe", "glm4v_moe_text", write_glm4v},
    Tower{"glm_ocr", "glm_ocr_text", write_glm_ocr},
    Tower{"deepseek_vl", "llama", write_deepseek_vl},
    Tower{"paddleocr_vl", "paddleocr_vl_text", write_paddleocr_vl},
    Tower{"idefics2", "mistral", write_idefics2, false, Tower::Ties::kByWrapper, {"perceiver_config"}},
    Tower{"ovis2", "qwen2", write_ovis2},
    Tower{"hunyuan_vl", "hunyuan_v1_dense", write_hunyuan_vl},
    Tower{"got_ocr2", "qwen2", write_got_ocr2},
    Tower{"internvl_chat", "", write_internvl_chat},
    Tower{"minicpmv", "minicpmv", write_minicpmv},
    Tower{"exaone4_5", "exaone4", write_exaone4_5},
    Tower{"kimi_vl", "deepseek_v3", write_kimi_k25},
    Tower{"lighton_ocr", "qwen3", write_mistral3},
    Tower{"mllama", "mllama_text_model", write_mllama, true},
};

}  // namespace

std::span<const Tower> towers() {
  return kTowers;
}

}  // namespace plimsoll::model
