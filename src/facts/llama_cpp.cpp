// SPDX-License-Identifier: Apache-2.0
#include "facts/llama_cpp.h"

#include <algorithm>
#include <array>
#include <string>

namespace plimsoll::facts {
namespace {

// Source: src/models/*.cpp that set a kind of window (swa_type), under both spellings where they differ.
constexpr std::array<std::string_view, 33> kWindowed{
    "afmoe",   "cohere2",       "cohere2moe",  "cohere2_moe", "dots3note",    "exaone4",     "exaone_moe",
    "gemma2",  "gemma3",        "gemma3n",     "gemma4",      "gpt_oss",      "granite_swa", "laguna",
    "lfm2",    "lfm2_moe",      "lfm2moe",     "llama4",      "maple",        "mellum",      "mimo2",
    "mimo_v2", "mimo_v2_flash", "modern_bert", "modernbert",  "muse_glimmer", "olmo2",       "olmo3",
    "plamo3",  "smallthinker",  "spark2_5",    "step35",      "step3p5"};

// Source: src/models/minicpm3.cpp, plm.cpp: no key_length_mla there.
constexpr std::array<std::string_view, 2> kExpanded{"minicpm3", "plm"};

// The text part of a wrapper is the model; GGUF spells with hyphens.
std::string plain(std::string_view model_type) {
  if (model_type.ends_with("_text")) model_type.remove_suffix(5);
  std::string text(model_type);
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

}  // namespace

bool llama_cpp_uses_windows(std::string_view model_type) {
  const std::string type = plain(model_type);
  return std::find(kWindowed.begin(), kWindowed.end(), type) != kWindowed.end();
}

bool llama_cpp_absorbs_latents(std::string_view model_type) {
  const std::string type = plain(model_type);
  return std::find(kExpanded.begin(), kExpanded.end(), type) == kExpanded.end();
}

}  // namespace plimsoll::facts
