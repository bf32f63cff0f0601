// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "model/families/families.h"

namespace plimsoll::model {

std::span<const Family> families() {
  static constexpr std::array<Family, 4> kFamilies{{
      {"LlamaForCausalLM", "llama", "llama", llama_from_config, llama_from_gguf},
      {"MistralForCausalLM", "mistral", "", mistral_from_config, nullptr},  // its GGUFs say "llama"
      {"Qwen2ForCausalLM", "qwen2", "qwen2", qwen2_from_config, qwen2_from_gguf},
      {"Qwen3ForCausalLM", "qwen3", "qwen3", qwen3_from_config, qwen3_from_gguf},
  }};
  return kFamilies;
}

}  // namespace plimsoll::model
