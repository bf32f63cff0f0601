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

// Their configs do not have num_nextn_predict_layers, and no draft model is named for them.
constexpr std::array<std::string_view, 7> kUncountedDrafts{
    "Qwen3NextForCausalLM",  "Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
    "Qwen3_5ForCausalLM",    "Qwen3_5MoeForCausalLM",           "MiMoV2ForCausalLM",
    "MiMoV2FlashForCausalLM"};
// One is run whatever the checkpoint has.
constexpr std::array<std::string_view, 3> kOneDraft{"HYV3ForCausalLM", "HYV4ForCausalLM",
                                                    "Qwen4ExpForConditionalGeneration"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

bool sglang_has_window_pool(std::string_view architecture) {
  return is_one_of(kWindowPools, architecture);
}

int sglang_draft_layers(std::string_view architecture, int stored) {
  if (is_one_of(kUncountedDrafts, architecture)) return 0;
  return is_one_of(kOneDraft, architecture) ? std::min(stored, 1) : stored;
}

}  // namespace plimsoll::facts
