// SPDX-License-Identifier: Apache-2.0
// What stands beside a language model: vision and audio encoders with their projectors. One row per wrapper,
// one function that lists every weight beside the language model's from the wrapper's config.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "model/families/spec_writer.h"
#include "model/key_reader.h"

namespace plimsoll::model {

struct Tower {
  std::string_view model_type;   // of the wrapper, the object that holds text_config (or vision_config)
  std::string_view text_family;  // model_type of the language model where its own config names none
  /// Errors are kept in the reader: kUnsupported for a part whose weights are not known.
  void (*write)(KeyReader& wrapper, SpecWriter&);
  /// AutoModelForCausalLM builds the language model alone from a config that names no architecture.
  bool is_text_when_bare = false;
  /// Who says whether the head is the embedding: the wrapper before its text_config, the text_config alone
  /// (whose model the wrapper holds whole), or nobody.
  enum class Ties { kByWrapper, kByText, kNever };
  Ties ties = Ties::kByWrapper;
  /// Keys of other objects with a model_type that `write` reads besides vision_config and audio_config.
  std::array<std::string_view, 2> parts = {};
};
std::span<const Tower> towers();

void write_llava(KeyReader& wrapper, SpecWriter& writer);
void write_vipllava(KeyReader& wrapper, SpecWriter& writer);
void write_video_llava(KeyReader& wrapper, SpecWriter& writer);
void write_cohere2_vision(KeyReader& wrapper, SpecWriter& writer);
void write_fuyu(KeyReader& wrapper, SpecWriter& writer);
void write_llava_next(KeyReader& wrapper, SpecWriter& writer);
void write_pixtral_llava(KeyReader& wrapper, SpecWriter& writer);
void write_mistral3(KeyReader& wrapper, SpecWriter& writer);
void write_gemma3(KeyReader& wrapper, SpecWriter& writer);
void write_gemma4(KeyReader& wrapper, SpecWriter& writer);
void write_paligemma(KeyReader& wrapper, SpecWriter& writer);
void write_aya_vision(KeyReader& wrapper, SpecWriter& writer);
void write_idefics3(KeyReader& wrapper, SpecWriter& writer);
void write_lfm2_vl(KeyReader& wrapper, SpecWriter& writer);
void write_minimax_m3_vl(KeyReader& wrapper, SpecWriter& writer);
void write_qwen2_vl(KeyReader& wrapper, SpecWriter& writer);
void write_qwen2_5_vl(KeyReader& wrapper, SpecWriter& writer);
void write_qwen3_vl(KeyReader& wrapper, SpecWriter& writer);
void write_qwen3_5(KeyReader& wrapper, SpecWriter& writer);
void write_qwen2_5_omni(KeyReader& wrapper, SpecWriter& writer);
void write_qwen3_omni(KeyReader& wrapper, SpecWriter& writer);
void write_llama4(KeyReader& wrapper, SpecWriter& writer);
void write_kimi_k25(KeyReader& wrapper, SpecWriter& writer);
void write_internvl(KeyReader& wrapper, SpecWriter& writer);
void write_gemma3n(KeyReader& wrapper, SpecWriter& writer);
void write_qwen2_audio(KeyReader& wrapper, SpecWriter& writer);
void write_voxtral(KeyReader& wrapper, SpecWriter& writer);
void write_phi4_multimodal(KeyReader& wrapper, SpecWriter& writer);
void write_granite_speech(KeyReader& wrapper, SpecWriter& writer);
void write_blip2(KeyReader& wrapper, SpecWriter& writer);
void write_glm4v(KeyReader& wrapper, SpecWriter& writer);
void write_glm_ocr(KeyReader& wrapper, SpecWriter& writer);
void write_deepseek_vl(KeyReader& wrapper, SpecWriter& writer);
void write_paddleocr_vl(KeyReader& wrapper, SpecWriter& writer);
void write_idefics2(KeyReader& wrapper, SpecWriter& writer);
void write_ovis2(KeyReader& wrapper, SpecWriter& writer);
void write_hunyuan_vl(KeyReader& wrapper, SpecWriter& writer);
void write_got_ocr2(KeyReader& wrapper, SpecWriter& writer);
void write_internvl_chat(KeyReader& wrapper, SpecWriter& writer);
void write_minicpmv(KeyReader& wrapper, SpecWriter& writer);
void write_exaone4_5(KeyReader& wrapper, SpecWriter& writer);
void write_mllama(KeyReader& wrapper, SpecWriter& writer);

}  // namespace plimsoll::model
