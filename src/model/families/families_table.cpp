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
    Family{"Lfm2MoeForCausalLM", "lfm2_moe", "", lfm2_moe_from_config, nullptr},
    Family{"RecurrentGemmaForCausalLM", "recurrent_gemma", "", recurrent_gemma_from_config, nullptr},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

}  // namespace plimsoll::model
