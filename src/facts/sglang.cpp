// SPDX-License-Identifier: Apache-2.0
#include "facts/sglang.h"

#include <algorithm>
#include <array>

namespace plimsoll::facts {
namespace {

constexpr std::array<std::string_view, 21> kWindowPools{"Llama4ForConditionalGeneration",
                                                        "Llama4ForCausalLM",
                                                        "GptOssForCausalLM",
                                                        "GraniteSWAForCausalLM",
                                                        "GraniteMoeSWAForCausalLM",
                                                        "IQuestQ1ForCausalLM",
                                                        "MiMoV2ForCausalLM",
                                                        "MiMoV2FlashForCausalLM",
                                                        "Step3p5ForCausalLM",
                                                        "Step3p7ForConditionalGeneration",
                                                        "Gemma4ForCausalLM",
                                                        "Gemma4ForConditionalGeneration",
                                                        "Gemma4UnifiedForConditionalGeneration",
                                                        "EmbeddingGemma2Model",
                                                        "DiffusionGemmaForBlockDiffusion",
                                                        "LagunaForCausalLM",
                                                        "MellumForCausalLM",
                                                        "MuseGlimmerForCausalLM",
                                                        "MuseGlimmerForConditionalGeneration",
                                                        "InklingForConditionalGeneration",
                                                        "UnlimitedOCRForCausalLM"};

}  // namespace

bool sglang_has_window_pool(std::string_view architecture) {
  return std::find(kWindowPools.begin(), kWindowPools.end(), architecture) != kWindowPools.end();
}

}  // namespace plimsoll::facts
