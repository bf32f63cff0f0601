// SPDX-License-Identifier: Apache-2.0
#include "model/quantization_reader.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace plimsoll::model {
namespace {

constexpr std::array<std::string_view, 4> kBitKeys{"bits", "w_bit", "num_bits", "nbits"};
constexpr std::array<std::string_view, 2> kGroupKeys{"group_size", "q_group_size"};
constexpr std::array<std::string_view, 2> kBlockKeys{"weight_block_size", "block_structure"};
constexpr int kMaxBits = 32;  // no code is wider than a float
constexpr std::int64_t kMaxGroup = std::int64_t{1} << 20;

bool is_group_size(const Json& value) {
  const auto size = value.as_integer();
  return size && (*size == -1 || (*size > 0 && *size <= kMaxGroup));
}

bool is_block(const Json& value) {
  return value.size() == 2 && std::all_of(value.items().begin(), value.items().end(), [](const Json& side) {
           return side.as_integer() && *side.as_integer() > 0 && is_group_size(side);
         });
}

}  // namespace

std::string text_of(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

const Json& first_of(const Json& object, std::initializer_list<std::string_view> keys) {
  static const Json kNull;
  for (const std::string_view key : keys)
    if (!object[key].is_null()) return object[key];
  return kNull;
}

std::optional<int> bits_at(const Json& object) {
  const auto bits = first_of(object, {"bits", "w_bit", "num_bits", "nbits"}).as_integer();
  return bits && *bits > 0 && *bits <= kMaxBits ? std::optional(static_cast<int>(*bits)) : std::nullopt;
}

void QuantizationReader::read() {
  result_.method = method();
  read_shown();
  const std::string& method = result_.method;
  if (method == "compressed-tensors" ||
      (json_["config_groups"].is_object() && method != "modelopt" && method != "fp8"))
    read_groups(json_, ModulePattern::Kind::kWords);
  else if (method == "modelopt")
    read_modelopt(json_);
  else if (method == "bitsandbytes")
    read_bitsandbytes();
  else if (method == "fp8" || method == "fbgemm_fp8")
    read_float8();
  else if (method == "gptq" || method == "auto-round" || method == "intel/auto-round" || method == "marlin")
    read_gptq();
  else if (method == "awq")
    read_awq();
  else if (method == "mlx")
    read_mlx();
  else
    read_others();
  if (result_.method == "fp8" && config_["expert_dtype"] == Json("fp4")) read_fp4_experts();
  read_left();
  check_figures(json_, result_.pointer, 0);
  if (has_too_many_rules_)
    result_.faults.push_back({result_.pointer,
                              "it has more than 1024 rules for groups of modules, which is "
                              "more than are read"});
  if (!result_.faults.empty()) forget_layouts();
}

// hf_quant_config.json says again, and more fully, what modelopt wrote into config.json.
void QuantizationReader::read_beside(const Json& quantization) {
  if (result_.method.empty()) result_.method = "modelopt";
  if (result_.rules_.empty()) read_modelopt(quantization);
  if (result_.unconverted.empty()) {
    leave_all(quantization["exclude_modules"], ModulePattern::Kind::kGlob);
  }
  if (result_.format.is_null() && quantization["quant_algo"].is_string())
    result_.format = quantization["quant_algo"];
  if (result_.group_size.is_null()) result_.group_size = quantization["group_size"];
  // Engines read this file only where the config has no declaration of its own.
  if (result_.pointer.empty() && result_.kv_cache_algorithm.empty())
    result_.kv_cache_algorithm = text_of(quantization["kv_cache_quant_algo"]);
}

std::string QuantizationReader::method() const {
  const std::string stated = text_of(json_["quant_method"]);
  if (!stated.empty()) return stated;
  if (text_of(json_["producer"]["name"]) == "modelopt" || json_["quant_algo"].is_string()) return "modelopt";
  if (json_["config_groups"].is_object() || json_["sparsity_config"].is_object()) return "compressed-tensors";
  if (json_["load_in_4bit"].as_bool().value_or(false) || json_["load_in_8bit"].as_bool().value_or(false))
    return "bitsandbytes";
  if (is_declaration(kMlxKey, config_[kMlxKey])) return "mlx";
  return {};
}

void QuantizationReader::read_shown() {
  result_.version = json_["version"];
  result_.desc_act = json_["desc_act"];
  if (!result_.desc_act.is_null() && !result_.desc_act.as_bool()) {
    fault(result_.pointer + "/desc_act", result_.desc_act, "true or false");
    result_.desc_act = Json();
  }
  if (result_.version.is_object() || result_.version.is_array()) result_.version = Json();
  result_.group_size = first_of(json_, {"group_size", "q_group_size"});
  result_.format =
      first_of(json_, {"format", "checkpoint_format", "quant_algo", "packing_format", "fmt", "mode"});
  if (!result_.format.is_string()) result_.format = Json();
  if (result_.format.is_null()) result_.format = json_["version"].is_string() ? json_["version"] : Json();
  result_.kv_cache_algorithm = text_of(json_["kv_cache_quant_algo"]);
  const Json& scheme = json_["kv_cache_scheme"];
  if (result_.kv_cache_algorithm.empty() && scheme["num_bits"].as_integer() == 8)
    result_.kv_cache_algorithm = text_of(scheme["type"]) == "int" ? "INT8" : "FP8";
}

// The modules of a rule for that scheme, behind all others. Rules of one scheme that follow each other are
// one: lists of modules by name are then looked up, not tried one by one.
ModulePatternSet& QuantizationReader::modules_of(const QuantizationScheme& scheme) {
  auto& rules = result_.rules_;
  if (!rules.empty() && rules.back().scheme == scheme) return rules.back().modules;
  if (rules.size() < kMaxRules)
    rules.push_back({{}, scheme});
  else
    has_too_many_rules_ = true;
  return rules.back().modules;
}

// The same for modules by their full names, among the rules from `first_rule` on: which of those comes first
// is all one, and makers of mixed models list thousands of modules with one scheme here and another there.
ModulePatternSet& QuantizationReader::modules_among(std::size_t first_rule,
                                                    const QuantizationScheme& scheme) {
  auto& rules = result_.rules_;
  for (std::size_t i = first_rule; i < rules.size(); ++i)
    if (rules[i].scheme == scheme) return rules[i].modules;
  return modules_of(scheme);
}

void QuantizationReader::leave_all(const Json& names, ModulePattern::Kind kind) {
  for (const Json& item : names.items()) {
    const std::string* name = item.as_string();
    if (!name) continue;
    result_.unconverted.push_back(*name);
    leave(name->starts_with("re:") ? ModulePattern::prefixed(*name) : ModulePattern(kind, *name));
  }
}

void QuantizationReader::read_left() {
  const bool has_globs = result_.method == "modelopt" || result_.method == "quark";
  const auto kind = has_globs ? ModulePattern::Kind::kGlob : ModulePattern::Kind::kWords;
  for (const char* key : {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules", "exclude",
                          "llm_int8_skip_modules", "skip_modules", "modules_to_not_quantize"})
    leave_all(json_[key], kind);
}

void QuantizationReader::fault(const std::string& pointer, const Json& value, const char* wanted) {
  constexpr std::size_t kMost = 16, kShown = 60;
  if (result_.faults.size() < kMost)
    result_.faults.push_back(
        {pointer, dump(value).substr(0, kShown) + " was found, " + wanted + " is allowed"});
}

// Figures wherever the declaration has them: at its top, in groups of modules, in rules for single ones.
void QuantizationReader::check_figures(const Json& object, const std::string& pointer, int depth) {
  constexpr int kDeepest = 6;
  for (const auto& [key, value] : object.members()) {
    const auto is_one_of = [&name = key](std::span<const std::string_view> keys) {
      return std::find(keys.begin(), keys.end(), name) != keys.end();
    };
    const std::string place = pointer + "/" + key;
    if (value.is_null()) continue;
    if (is_one_of(kBitKeys)) {
      const auto bits = value.as_integer();
      if (!bits || *bits < 1 || *bits > kMaxBits) fault(place, value, "a number of bits from 1 to 32");
    } else if (is_one_of(kGroupKeys)) {
      if (!is_group_size(value)) fault(place, value, "a number of weights, or -1 for one group");
    } else if (is_one_of(kBlockKeys)) {
      if (!value.is_string() && !is_block(value)) fault(place, value, "a pair of positive numbers");
    } else if (value.is_object() && depth < kDeepest) {
      check_figures(value, place, depth + 1);
    }
  }
}

// What cannot be counted is not guessed.
void QuantizationReader::forget_layouts() {
  for (Quantization::Rule& rule : result_.rules_) {
    rule.scheme.layout = Layout::kOther;
    rule.scheme.bits.reset();
  }
  result_.group_size = Json();
}

}  // namespace plimsoll::model
