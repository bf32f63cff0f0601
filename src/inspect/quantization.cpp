// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "inspect/sizes.h"

namespace plimsoll::inspect {
namespace {

// compressed-tensors states bits and group size per group of layers; the first weight entry counts.
const Json& first_weights_entry(const Json& config) {
  for (const auto& [name, group] : config["config_groups"].members())
    if (group["weights"].is_object()) return group["weights"];
  return config["config_groups"];  // null or without weights: its members read as null
}

Json bits_of(const std::string& method, const Json& config) {
  for (const char* key : {"bits", "w_bit", "num_bits"})
    if (config[key].is_integer()) return config[key];
  if (config["load_in_4bit"].as_bool().value_or(false)) return 4;
  if (config["load_in_8bit"].as_bool().value_or(false)) return 8;
  if (first_weights_entry(config)["num_bits"].is_integer()) return first_weights_entry(config)["num_bits"];
  if (method == "fp8") return 8;
  if (method == "mxfp4") return 4;
  return {};
}

Json format_of(const std::string& method, const Json& config) {
  if (config["format"].is_string()) return config["format"];
  if (method == "bitsandbytes")
    return config["load_in_4bit"].as_bool().value_or(false)
               ? (config["bnb_4bit_quant_type"].is_string() ? config["bnb_4bit_quant_type"] : Json("fp4"))
               : Json("llm.int8");
  for (const char* key : {"checkpoint_format", "quant_algo", "version"})
    if (config[key].is_string()) return config[key];
  return {};
}

Json modules_of(const Json& config) {
  for (const char* key : {"ignore", "modules_to_not_convert", "exclude_modules", "llm_int8_skip_modules"})
    if (config[key].is_array()) return config[key];
  return Json::array();
}

/// Bits of one code, without the block's scale and minimum.
int code_bits(DType dtype) {
  switch (dtype) {
    case DType::kIQ1S:
    case DType::kIQ1M:
      return 1;
    case DType::kQ2K:
    case DType::kIQ2XXS:
    case DType::kIQ2XS:
    case DType::kIQ2S:
    case DType::kTQ1_0:  // three values; five of them share a byte
    case DType::kTQ2_0:
      return 2;
    case DType::kQ3K:
    case DType::kIQ3XXS:
    case DType::kIQ3S:
      return 3;
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ5K:
      return 5;
    case DType::kQ6K:
      return 6;
    case DType::kQ8_0:
    case DType::kQ8_1:
    case DType::kQ8K:
      return 8;
    default:
      return 4;  // q4_0 q4_1 q4_k iq4_nl iq4_xs mxfp4 nvfp4
  }
}

Json gguf_quantization(const artifact::Artifact& artifact) {
  std::map<DType, std::int64_t> elements;
  for (const auto& tensor : artifact.tensors())
    if (is_block_quantized(tensor.dtype)) elements[tensor.dtype] += tensor.elements();
  if (elements.empty()) return {};
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  const DTypeInfo& type = info(most->first);
  return Json::object({{"method", "gguf"},
                       {"format", type.name},
                       {"bits", code_bits(most->first)},
                       {"group_size", type.block_elements},
                       {"version", artifact.config()["general.quantization_version"]},
                       {"desc_act", nullptr},
                       {"unquantized_modules", Json::array()}});
}

}  // namespace

Json quantization_of(const Subject& subject) {
  if (subject.is_gguf()) return gguf_quantization(subject.artifact);
  const Json& root = subject.artifact.config();
  const Json& config = root["quantization_config"].is_object() ? root["quantization_config"]
                                                               : subject.figures["quantization_config"];
  if (!config.is_object()) return {};
  const std::string* stated = config["quant_method"].as_string();
  const std::string method = stated ? *stated : std::string();
  const Json& weights = first_weights_entry(config);
  return Json::object(
      {{"method", stated ? Json(method) : Json()},
       {"format", format_of(method, config)},
       {"bits", bits_of(method, config)},
       {"group_size", config.contains("group_size") ? config["group_size"] : weights["group_size"]},
       {"version", config["version"]},
       {"desc_act", config["desc_act"]},
       {"unquantized_modules", modules_of(config)}});
}

}  // namespace plimsoll::inspect
