// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "model/families/families.h"

namespace plimsoll::model {
namespace {

constexpr std::array kFamilies{
    Family{"LlamaForCausalLM", "llama", "llama", llama_from_config, llama_from_gguf},
    Family{"MistralForCausalLM", "mistral", "", mistral_from_config, nullptr},  // its GGUFs say "llama"
    Family{"Qwen2ForCausalLM", "qwen2", "qwen2", qwen2_from_config, qwen2_from_gguf},
    Family{"Qwen2MoeForCausalLM", "qwen2_moe", "", qwen2_moe_from_config, nullptr},
    Family{"Qwen3ForCausalLM", "qwen3", "qwen3", qwen3_from_config, qwen3_from_gguf},
    Family{"Qwen3MoeForCausalLM", "qwen3_moe", "", qwen3_moe_from_config, nullptr},
    Family{"DeepseekV3ForCausalLM", "deepseek_v3", "", deepseek_v3_from_config, nullptr},
    Family{"", "kimi_k2", "", deepseek_v3_from_config, nullptr},  // says DeepseekV3ForCausalLM
    Family{"DeepseekV32ForCausalLM", "deepseek_v32", "", deepseek_v32_from_config, nullptr},
    Family{"Qwen3NextForCausalLM", "qwen3_next", "", qwen3_next_from_config, nullptr},
    Family{"Qwen3_5ForCausalLM", "qwen3_5_text", "", qwen3_5_from_config, nullptr},
    Family{"Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", "", qwen3_5_moe_from_config, nullptr},
    Family{"Qwen4ExpForCausalLM", "qwen4_exp_text", "", qwen4_exp_from_config, nullptr},
    Family{"MambaForCausalLM", "mamba", "", mamba_from_config, nullptr},
    Family{"FalconMambaForCausalLM", "falcon_mamba", "", mamba_from_config, nullptr},
    Family{"Mamba2ForCausalLM", "mamba2", "", mamba2_from_config, nullptr},
    Family{"BambaForCausalLM", "bamba", "", bamba_from_config, nullptr},
    Family{"FalconH1ForCausalLM", "falcon_h1", "", falcon_h1_from_config, nullptr},
    Family{"GraniteMoeHybridForCausalLM", "granitemoehybrid", "", granitemoehybrid_from_config, nullptr},
    Family{"JambaForCausalLM", "jamba", "", jamba_from_config, nullptr},
    Family{"ZambaForCausalLM", "zamba", "", zamba_from_config, nullptr},
    Family{"Zamba2ForCausalLM", "zamba2", "", zamba2_from_config, nullptr},
    Family{"NemotronHForCausalLM", "nemotron_h", "", nemotron_h_from_config, nullptr},
    Family{"Lfm2ForCausalLM", "lfm2", "", lfm2_from_config, nullptr},
    Family{"Lfm3ForCausalLM", "lfm3", "", lfm3_from_config, nullptr},
    Family{"", "glm4v_moe_text", "", glm4v_moe_from_config, nullptr},
    Family{"Lfm2MoeForCausalLM", "lfm2_moe", "", lfm2_moe_from_config, nullptr},
    Family{"RecurrentGemmaForCausalLM", "recurrent_gemma", "", recurrent_gemma_from_config, nullptr},
    Family{"Glm4MoeForCausalLM", "glm4_moe", "", glm4_moe_from_config, nullptr},
    Family{"Glm4MoeLiteForCausalLM", "glm4_moe_lite", "", glm4_moe_lite_from_config, nullptr},
    Family{"GlmMoeDsaForCausalLM", "glm_moe_dsa", "", glm_moe_dsa_from_config, nullptr},
    Family{"Dots1ForCausalLM", "dots1", "", dots1_from_config, nullptr},
    Family{"DeepseekForCausalLM", "deepseek", "", deepseek_from_config, nullptr},
    Family{"DeepseekV2ForCausalLM", "deepseek_v2", "", deepseek_v2_from_config, nullptr},
    Family{"DeepseekV4ForCausalLM", "deepseek_v4", "", deepseek_v4_from_config, nullptr},
    Family{"", "deepseek_ref", "", deepseek_v4_from_config, nullptr},
    Family{"MiniMaxForCausalLM", "minimax", "", minimax_from_config, nullptr},
    Family{"MiniMaxText01ForCausalLM", "minimax_text_01", "", minimax_from_config, nullptr},
    Family{"MiniMaxM1ForCausalLM", "minimax_m1", "", minimax_from_config, nullptr},
    Family{"MiniMaxM2ForCausalLM", "minimax_m2", "", minimax_m2_from_config, nullptr},
    Family{"MiniMaxM3ForCausalLM", "minimax_m3", "", minimax_m3_from_config, nullptr},
    Family{"MiniMaxM3VLForCausalLM", "minimax_m3_vl_text", "", minimax_m3_from_config, nullptr},
    Family{"LongcatFlashForCausalLM", "longcat_flash", "", longcat_flash_from_config, nullptr},
    Family{"KimiLinearForCausalLM", "kimi_linear", "", kimi_linear_from_config, nullptr},
    Family{"BailingHybridForCausalLM", "bailing_hybrid", "", bailing_hybrid_from_config, nullptr},
    Family{"MiMoV2FlashForCausalLM", "mimo_v2_flash", "", mimo_v2_flash_from_config, nullptr},
    Family{"Step3p5ForCausalLM", "step3p5", "", step3p5_from_config, nullptr},
    Family{"Step3p7FlashForCausalLM", "step3p7", "", step3p5_from_config, nullptr},
    Family{"AfmoeForCausalLM", "afmoe", "", afmoe_from_config, nullptr},
    Family{"FlexOlmoForCausalLM", "flex_olmo", "", flex_olmo_from_config, nullptr},
    Family{"", "sarvam_mla", "", deepseek_v3_from_config, nullptr},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

}  // namespace plimsoll::model
