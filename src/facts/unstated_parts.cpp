// SPDX-License-Identifier: Apache-2.0
#include "facts/unstated_parts.h"

#include <utility>

namespace plimsoll::facts {
namespace {

constexpr UnstatedPart kParts[] = {
    {"llama4", R"({"vision_config": {"hidden_size": 1408, "image_size": 336, "vision_output_dim": 4096}})",
     "the released vision tower, 1,408 wide, in place of the class's",
     "https://huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct, config.json, vision_config"},
    {"gemma4", R"({"audio_config": {}})", "the class's audio tower",
     "transformers 5.24.0 Gemma4AudioConfig; the E models hear"},
    {"deepseek_v2", R"({"q_lora_rank": null})", "queries by one matrix in place of two of the class's rank",
     "https://huggingface.co/deepseek-ai/DeepSeek-V2-Lite, config.json, q_lora_rank"},
    {"mimo_v2_flash",
     R"({"num_nextn_predict_layers": 3, "quantization_config": {"ignored_layers": ["o_proj"]}})",
     "three prediction layers; attention's output stays in 16 bits",
     "https://huggingface.co/XiaomiMiMo/MiMo-V2-Flash, model card and config.json, ignored_layers"},
};

bool fill_in(Json& config, const Json& values) {
  for (const auto& [key, value] : values.members()) {
    const Json& stated = config[key];
    if (stated.is_object() && value.is_object()) {
      Json inner = stated;
      if (!fill_in(inner, value)) return false;
      config.set(key, std::move(inner));
      continue;
    }
    if (!stated.is_null() || (value.is_null() && config.contains(key))) return false;
    config.set(key, value);
  }
  return true;
}

}  // namespace

std::span<const UnstatedPart> unstated_parts() {
  return kParts;
}

Json filled(const Json& config, const UnstatedPart& part) {
  const std::string* type = config["model_type"].as_string();
  if (!config.is_object() || !type || *type != part.model_type) return {};
  const auto values = parse_json(part.fill, part.model_type);
  PLIMSOLL_CHECK(values.has_value(), "a part's values are JSON");
  Json copy = config;
  return fill_in(copy, *values) ? copy : Json();
}

}  // namespace plimsoll::facts
