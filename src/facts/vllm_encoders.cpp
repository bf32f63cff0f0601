// SPDX-License-Identifier: Apache-2.0
#include "facts/vllm_encoders.h"

#include <algorithm>
#include <array>

namespace plimsoll::facts {
namespace {

// Gemma 3n and 4 run transformers' modules, whole on each rank, and are not among them. Qwen3.8's class would
// split too, but its expected weights, and the one start of it on several ranks that was measured, are whole.
constexpr std::array kEncoders{
    VllmEncoder{"Qwen2VLForConditionalGeneration", true, true},
    VllmEncoder{"Qwen2_5_VLForConditionalGeneration", true, true},
    VllmEncoder{"Qwen3VLForConditionalGeneration", true, true},
    VllmEncoder{"Qwen3VLMoeForConditionalGeneration", true, true},
    VllmEncoder{"Qwen3_5ForConditionalGeneration", true, true},
    VllmEncoder{"Qwen3_5MoeForConditionalGeneration", true, true},
    VllmEncoder{"Exaone4_5_ForConditionalGeneration", true, true},
    VllmEncoder{"Glm4vForConditionalGeneration", true, true},
    VllmEncoder{"Glm4vMoeForConditionalGeneration", true, true},
    VllmEncoder{"GlmOcrForConditionalGeneration", true, true},
    VllmEncoder{"Llama4ForConditionalGeneration", true, true},
    VllmEncoder{"MiniMaxM3SparseForConditionalGeneration", true, true},
    VllmEncoder{"LlavaForConditionalGeneration", true, false},
    VllmEncoder{"LlavaNextForConditionalGeneration", true, false},
    VllmEncoder{"Mistral3ForConditionalGeneration", true, false},
    VllmEncoder{"Cohere2VisionForConditionalGeneration", true, false},
    VllmEncoder{"KimiK25ForConditionalGeneration", false, true},
    VllmEncoder{"InternVLChatModel", false, true},
    VllmEncoder{"Gemma3ForConditionalGeneration", false, false},
    VllmEncoder{"PaliGemmaForConditionalGeneration", false, false},
    VllmEncoder{"Idefics3ForConditionalGeneration", false, false},
    VllmEncoder{"SmolVLMForConditionalGeneration", false, false},
    VllmEncoder{"Lfm2VlForConditionalGeneration", false, false},
    VllmEncoder{"PaddleOCRVLForConditionalGeneration", false, false},
};

}  // namespace

const VllmEncoder* find_vllm_encoder(std::string_view architecture) {
  const auto* row = std::find_if(kEncoders.begin(), kEncoders.end(), [&](const VllmEncoder& encoder) {
    return encoder.architecture == architecture;
  });
  return row == kEncoders.end() ? nullptr : row;
}

}  // namespace plimsoll::facts
