// SPDX-License-Identifier: Apache-2.0
// One function per family of quantization methods.
#include <algorithm>
#include <cctype>
#include <utility>

#include "model/quantization_reader.h"

namespace plimsoll::model {
namespace {

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// modelopt's names: FP8, FP8_PER_CHANNEL_PER_TOKEN, FP8_PB_WO, NVFP4, W4A16_NVFP4, W4A16_AWQ, MXFP4, INT8_SQ.
QuantizationScheme scheme_of_algorithm(const std::string& algorithm, const Json& object) {
  QuantizationScheme scheme;
  scheme.group_size = object["group_size"].as_integer();
  scheme.has_input_scale =
      !holds(algorithm, "W4A16") && !holds(algorithm, "PER_TOKEN") && !holds(algorithm, "_WO");
  if (holds(algorithm, "NVFP4")) {
    scheme.layout = Layout::kNvfp4;
    scheme.bits = 4;
    if (!scheme.group_size) scheme.group_size = 16;
  } else if (holds(algorithm, "MXFP4")) {
    scheme.layout = Layout::kMxfp4;
    scheme.bits = 4;
    scheme.group_size = 32;
    scheme.has_input_scale = false;
  } else if (holds(algorithm, "W4A") || holds(algorithm, "INT4")) {
    scheme.layout = Layout::kPackedBytes;
    scheme.bits = 4;
  } else if (holds(algorithm, "FP8")) {
    scheme.layout = Layout::kFloat8;
    scheme.bits = 8;
    scheme.group_size = {};
    scheme.has_one_scale = !holds(algorithm, "PER_CHANNEL") && !holds(algorithm, "_PB");
    if (holds(algorithm, "_PB")) scheme.block_rows = scheme.block_columns = 128;
  } else if (holds(algorithm, "INT8")) {
    scheme.layout = Layout::kInt8;
    scheme.bits = 8;
  }
  return scheme;
}

}  // namespace

// config_groups of compressed-tensors and modelopt.
void QuantizationReader::read_groups(const Json& object, ModulePattern::Kind kind) {
  const Json& sparsity = object["sparsity_config"];
  const bool is_24 =
      text_of(sparsity["sparsity_structure"]) == "2:4" || text_of(object["format"]) == "marlin-24";
  for (const auto& [name, group] : object["config_groups"].members()) {
    const Json& weights = group["weights"];
    if (!weights.is_object()) continue;
    QuantizationScheme scheme = scheme_of_group(group, weights, text_of(object["format"]));
    scheme.has_24_sparsity = is_24;
    ModulePatternSet& modules = modules_of(scheme);
    bool has_targets = false;
    for (const Json& item : group["targets"].items()) {
      const std::string* target = item.as_string();
      if (!target) continue;
      // Class names mean every layer of the class: linear ones are what is asked about.
      const bool is_class = !target->starts_with("re:") && !target->empty() &&
                            std::isupper(static_cast<unsigned char>(target->front())) != 0;
      ModulePattern pattern = is_class                     ? ModulePattern(ModulePattern::Kind::kAny, {})
                              : target->starts_with("re:") ? ModulePattern::prefixed(*target)
                                                           : ModulePattern(kind, *target);
      has_targets |= pattern.is_usable();
      modules.add(std::move(pattern));
    }
    if (!has_targets) modules.add({ModulePattern::Kind::kAny, {}});
    if (result_.group_size.is_null()) result_.group_size = weights["group_size"];
    if (result_.format.is_null()) result_.format = group["format"];
  }
  if (!result_.rules_.empty() || text_of(sparsity["format"]).empty()) return;
  result_.format = sparsity["format"];
  QuantizationScheme scheme;
  scheme.layout = Layout::kSparse24;
  scheme.bits = 16;
  add_everywhere(scheme);
}

QuantizationScheme QuantizationReader::scheme_of_group(const Json& group, const Json& weights,
                                                       std::string format) {
  if (group["format"].is_string()) format = text_of(group["format"]);
  QuantizationScheme scheme;
  scheme.bits = bits_at(weights);
  scheme.group_size = weights["group_size"].as_integer();
  const std::string type = text_of(weights["type"]), strategy = text_of(weights["strategy"]);
  const bool is_float = type == "float";
  if (format == "pack-quantized" || format == "marlin-24" || format == "gptq_marlin")
    scheme.layout = Layout::kPackedInt;
  else if (format.starts_with("nvfp4") || (is_float && scheme.bits == 4 && scheme.group_size == 16))
    scheme.layout = Layout::kNvfp4;
  else if (format.starts_with("mxfp4") || (is_float && scheme.bits == 4))
    scheme.layout = Layout::kMxfp4;
  else
    scheme.layout = is_float ? Layout::kFloat8 : Layout::kInt8;
  const auto& block = weights["block_structure"].items();
  if (block.size() == 2) {
    scheme.block_rows = block[0].as_integer();
    scheme.block_columns = block[1].as_integer();
  }
  scheme.has_one_scale = strategy == "tensor" || (strategy.empty() && scheme.bits == 8);
  scheme.has_zero_points = !weights["symmetric"].as_bool().value_or(true);
  const std::string order = text_of(weights["actorder"]);
  scheme.has_order = order == "group" || order == "dynamic";
  const Json& inputs = group["input_activations"];
  scheme.has_input_scale = inputs.is_object() && inputs["dynamic"] != Json(true);
  return scheme;
}

void QuantizationReader::read_modelopt(const Json& object) {
  for (const auto& [name, layer] : object["quantized_layers"].members()) {
    const std::string algorithm = text_of(layer["quant_algo"]);
    add_to_algorithm(name, algorithm, layer);
  }
  if (!result_.rules_.empty()) return;
  read_groups(object, ModulePattern::Kind::kGlob);
  const std::string algorithm = text_of(object["quant_algo"]);
  if (!result_.rules_.empty() || algorithm.empty() || algorithm == "MIXED_PRECISION") return;
  add_everywhere(scheme_of_algorithm(algorithm, object));
}

// One rule for each algorithm, however many modules name it.
void QuantizationReader::add_to_algorithm(const std::string& module, const std::string& algorithm,
                                          const Json& layer) {
  auto at = std::find(algorithms_.begin(), algorithms_.end(), algorithm);
  if (at == algorithms_.end()) {
    has_too_many_rules_ |= result_.rules_.size() >= kMaxRules;
    if (has_too_many_rules_) return;
    algorithms_.push_back(algorithm);
    result_.rules_.push_back({{}, scheme_of_algorithm(algorithm, layer)});
    at = algorithms_.end() - 1;
  }
  const auto rule = result_.rules_.size() - static_cast<std::size_t>(algorithms_.end() - at);
  result_.rules_[rule].modules.add({ModulePattern::Kind::kGlob, module});
}

void QuantizationReader::read_bitsandbytes() {
  QuantizationScheme scheme;
  if (json_["load_in_4bit"].as_bool().value_or(false)) {
    const std::string type = text_of(json_["bnb_4bit_quant_type"]);
    result_.format = type.empty() ? "fp4" : type;
    scheme.is_fp4 = type != "nf4";
    scheme.layout = Layout::kBitsandbytes4;
    scheme.bits = 4;
    scheme.group_size = first_of(json_, {"bnb_4bit_blocksize", "blocksize"}).as_integer().value_or(64);
    scheme.doubly_quantized = json_["bnb_4bit_use_double_quant"].as_bool().value_or(false);
    scheme.storage = dtype_from_config(text_of(json_["bnb_4bit_quant_storage"])).value_or(DType::kU8);
  } else {
    result_.format = "llm.int8";
    scheme.layout = Layout::kBitsandbytes8;
    scheme.bits = 8;
  }
  add_everywhere(scheme);
  leave({ModulePattern::Kind::kWords, "lm_head"});  // both libraries leave the output head
}

void QuantizationReader::read_float8() {
  if (json_["quantized_layers"].is_object()) read_modelopt(json_);
  QuantizationScheme scheme;
  scheme.layout = Layout::kFloat8;
  scheme.bits = 8;
  const auto& block = json_["weight_block_size"].items();
  if (block.size() == 2) {
    scheme.block_rows = block[0].as_integer();
    scheme.block_columns = block[1].as_integer();
  }
  scheme.has_one_scale = block.empty() && result_.method == "fp8";
  scheme.has_input_scale = text_of(json_["activation_scheme"]) == "static";
  add_everywhere(scheme);
}

void QuantizationReader::read_gptq() {
  QuantizationScheme scheme;
  const bool is_awq = holds(text_of(json_["packing_format"]), "awq");
  scheme.layout = is_awq ? Layout::kAwq : Layout::kGptq;
  scheme.bits = bits_at(json_);
  scheme.group_size = json_["group_size"].as_integer();
  scheme.has_zero_points = true;  // stored for symmetric weights too
  scheme.has_order = result_.method == "gptq";
  for (const auto& [pattern, values] : json_["dynamic"].members()) {
    if (pattern.starts_with("-:")) {
      result_.unconverted.push_back(pattern);
      leave({ModulePattern::Kind::kRegex, pattern.substr(2)});
      continue;
    }
    QuantizationScheme own = scheme;
    if (const auto bits = bits_at(values)) own.bits = bits;
    if (const auto group = values["group_size"].as_integer()) own.group_size = group;
    add({ModulePattern::Kind::kRegex, pattern.starts_with("+:") ? pattern.substr(2) : pattern}, own);
  }
  const std::size_t first_named = result_.rules_.size();
  for (const auto& [module, values] : json_["extra_config"].members()) {
    QuantizationScheme own = scheme;
    if (const auto bits = bits_at(values)) own.bits = bits;
    if (const auto group = values["group_size"].as_integer()) own.group_size = group;
    if (own.bits && *own.bits >= 16) {
      result_.unconverted.push_back(module);
      leave({ModulePattern::Kind::kWords, module});
    } else {
      modules_among(first_named, own).add({ModulePattern::Kind::kWords, module});
    }
  }
  read_named_blocks(scheme);
  const Json& head = first_of(json_, {"lm_head", "quant_lm_head"});
  if (!head.as_bool().value_or(false)) leave({ModulePattern::Kind::kWords, "lm_head"});
}

// modules_in_block_to_quantize: nothing but these, named within a block.
void QuantizationReader::read_named_blocks(const QuantizationScheme& scheme) {
  ModulePatternSet modules;
  const auto take = [&](const Json& item) {
    if (const std::string* name = item.as_string()) modules.add({ModulePattern::Kind::kWords, *name});
  };
  for (const Json& step : first_of(json_, {"modules_in_block_to_quantize", "inside_layer_modules"}).items()) {
    take(step);
    for (const Json& item : step.items()) take(item);
  }
  if (modules.empty())
    add_everywhere(scheme);
  else
    result_.rules_.push_back({std::move(modules), scheme});
}

void QuantizationReader::read_awq() {
  QuantizationScheme scheme;
  scheme.layout = Layout::kAwq;
  scheme.bits = bits_at(json_);
  scheme.group_size = first_of(json_, {"group_size", "q_group_size"}).as_integer();
  scheme.has_zero_points = json_["zero_point"].as_bool().value_or(true);
  add_everywhere(scheme);
  leave({ModulePattern::Kind::kWords, "lm_head"});
}

// Beside the figures for all stand modules by their names, with figures of their own or `false`.
void QuantizationReader::read_mlx() {
  QuantizationScheme scheme;
  scheme.layout = Layout::kMlx;
  scheme.bits = bits_at(json_);
  scheme.group_size = json_["group_size"].as_integer();
  const auto is_affine = [](const Json& mode) { return mode.is_null() || mode == Json("affine"); };
  scheme.has_zero_points = is_affine(json_["mode"]);
  for (const auto& [module, values] : json_.members()) {
    if (values == Json(false)) {
      result_.unconverted.push_back(module);
      leave({ModulePattern::Kind::kWords, module});
    } else if (values.is_object()) {
      QuantizationScheme own = scheme;
      if (const auto bits = bits_at(values)) own.bits = bits;
      if (const auto group = values["group_size"].as_integer()) own.group_size = group;
      if (!values["mode"].is_null()) own.has_zero_points = is_affine(values["mode"]);
      modules_among(0, own).add({ModulePattern::Kind::kWords, module});
    }
  }
  add_everywhere(scheme);
}

void QuantizationReader::read_others() {
  const std::string& method = result_.method;
  QuantizationScheme scheme;
  scheme.bits = bits_at(json_);
  scheme.group_size = json_["group_size"].as_integer();
  if (method == "mxfp4") {
    scheme.layout = Layout::kMxfp4Blocks;
    scheme.bits = 4;
    scheme.group_size = 32;
  } else if (method == "torchao") {
    read_torchao(scheme);
  } else if (method == "quark") {
    read_quark(scheme);
  } else if (method == "hqq") {
    const Json& weights = json_["quant_config"]["weight_quant_params"];
    scheme.bits = bits_at(weights);
    scheme.group_size = weights["group_size"].as_integer();
  } else if (method == "eetq") {
    scheme.layout = Layout::kInt8;
    scheme.bits = 8;
    leave({ModulePattern::Kind::kWords, "lm_head"});
  } else if (method == "quanto") {
    const std::string type = text_of(json_["weights"]);
    scheme.bits = holds(type, "8") ? 8 : holds(type, "4") ? 4 : holds(type, "2") ? 2 : scheme.bits;
  } else if (method == "bitnet") {
    scheme.bits = 2;  // one of three values, four to a byte
  }
  if (scheme.bits || scheme.layout != Layout::kOther) add_everywhere(scheme);
}

// quant_type is a name ("int4_weight_only") or an object of a class's name and its fields.
void QuantizationReader::read_torchao(QuantizationScheme& scheme) {
  const Json& type = json_["quant_type"];
  const Json& entry = type["default"].is_object() ? type["default"] : type;
  const std::string given = entry.is_object() ? text_of(entry["_type"]) : text_of(entry);
  const Json& fields = entry.is_object() ? entry["_data"] : json_["quant_type_kwargs"];
  result_.format = given.empty() ? Json() : Json(given);
  const std::string spelled = lower_case(given);
  if (holds(spelled, "nvfp4") || holds(spelled, "int4"))
    scheme.bits = 4;
  else if (holds(spelled, "int8") || holds(spelled, "float8"))
    scheme.bits = 8;
  else if (holds(spelled, "intx")) {
    const std::string dtype = text_of(fields["weight_dtype"]["_data"]) + text_of(fields["weight_dtype"]);
    for (int bits = 1; bits <= 8; ++bits)
      if (dtype.ends_with("int" + std::to_string(bits))) scheme.bits = bits;
  }
  scheme.has_whole_bytes = holds(spelled, "intx");
  const Json& granularity = fields["granularity"]["_data"]["group_size"];
  if (const auto group = (granularity.is_null() ? fields["group_size"] : granularity).as_integer()) {
    scheme.group_size = group;
    result_.group_size = *group;
  }
}

void QuantizationReader::read_quark(QuantizationScheme& scheme) {
  const Json& weights = json_["global_quant_config"]["weight"];
  const Json& entry = weights.is_array() && !weights.items().empty() ? weights.items()[0] : weights;
  const std::string dtype = text_of(entry["dtype"]);
  scheme.group_size = entry["group_size"].as_integer();
  if (result_.group_size.is_null()) result_.group_size = entry["group_size"];
  if (result_.format.is_null() && !dtype.empty()) result_.format = dtype;
  if (holds(dtype, "4"))
    scheme.bits = 4;
  else if (holds(dtype, "8"))
    scheme.bits = 8;
  if (dtype == "fp4") scheme.layout = Layout::kMxfp4;
  if (holds(dtype, "fp8")) scheme.layout = Layout::kFloat8;
}

// DeepSeek-V4 says beside its fp8 declaration that routed experts have four bits and a scale for 32.
void QuantizationReader::read_fp4_experts() {
  QuantizationScheme scheme;
  scheme.layout = Layout::kMxfp4;
  scheme.bits = 4;
  scheme.group_size = 32;
  ModulePatternSet modules;
  modules.add({ModulePattern::Kind::kWords, "experts"});
  result_.rules_.insert(result_.rules_.begin(), {std::move(modules), scheme});
}

}  // namespace plimsoll::model
