// SPDX-License-Identifier: Apache-2.0
#include "model/quantization.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <utility>

namespace plimsoll::model {
namespace {

std::string text_of(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// The first of several spellings that is there and is not null.
const Json& first_of(const Json& object, std::initializer_list<std::string_view> keys) {
  static const Json kNull;
  for (const std::string_view key : keys)
    if (!object[key].is_null()) return object[key];
  return kNull;
}

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

std::optional<int> bits_at(const Json& object) {
  const auto bits = first_of(object, {"bits", "w_bit", "num_bits", "nbits"}).as_integer();
  return bits && *bits > 0 && *bits <= kMaxBits ? std::optional(static_cast<int>(*bits)) : std::nullopt;
}

constexpr std::array<std::string_view, 3> kDeclarationKeys{"quantization_config", "compression_config",
                                                           "compressed_config"};

// The object that declares the quantization, with the place where it stands.
const Json* find_declaration(const Json& config, std::string& pointer) {
  const auto found_in = [&](const Json& object, const std::string& place) -> const Json* {
    for (const std::string_view key : kDeclarationKeys)
      if (object[key].is_object() && object[key].size() > 0) {
        pointer = place + "/" + std::string(key);
        return &object[key];
      }
    return nullptr;
  };
  if (const Json* found = found_in(config, "")) return found;
  for (const auto& [key, part] : config.members()) {
    if (!part.is_object()) continue;
    if (const Json* found = found_in(part, "/" + key)) return found;
    for (const auto& [inner, nested] : part.members())
      if (nested.is_object())
        if (const Json* found = found_in(nested, "/" + key + "/" + inner)) return found;
  }
  return nullptr;
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

// Fills a Quantization; one function per family of methods.
class QuantizationReader {
 public:
  QuantizationReader(const Json& config, const Json& declaration, Quantization& result)
      : config_(config), json_(declaration), result_(result) {}

  void read() {
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
    else
      read_others();
    if (result_.method == "fp8" && config_["expert_dtype"] == Json("fp4")) read_fp4_experts();
    read_left();
    check_figures(json_, result_.pointer, 0);
    if (!result_.faults.empty()) forget_layouts();
  }

  /// hf_quant_config.json says again, and more fully, what modelopt wrote into config.json.
  void read_beside(const Json& quantization) {
    if (result_.method.empty()) result_.method = "modelopt";
    if (result_.rules_.empty()) read_modelopt(quantization);
    if (result_.unconverted.empty()) {
      leave_all(quantization["exclude_modules"], ModulePattern::Kind::kGlob);
    }
    if (result_.format.is_null()) result_.format = quantization["quant_algo"];
    if (result_.group_size.is_null()) result_.group_size = quantization["group_size"];
    if (result_.kv_cache_algorithm.empty())
      result_.kv_cache_algorithm = text_of(quantization["kv_cache_quant_algo"]);
  }

 private:
  std::string method() const {
    const std::string stated = text_of(json_["quant_method"]);
    if (!stated.empty()) return stated;
    if (text_of(json_["producer"]["name"]) == "modelopt" || json_["quant_algo"].is_string())
      return "modelopt";
    if (json_["config_groups"].is_object() || json_["sparsity_config"].is_object())
      return "compressed-tensors";
    if (json_["load_in_4bit"].as_bool().value_or(false) || json_["load_in_8bit"].as_bool().value_or(false))
      return "bitsandbytes";
    return {};
  }

  void read_shown() {
    result_.version = json_["version"];
    result_.desc_act = json_["desc_act"];
    result_.group_size = first_of(json_, {"group_size", "q_group_size"});
    result_.format = first_of(json_, {"format", "checkpoint_format", "quant_algo", "packing_format", "fmt"});
    if (result_.format.is_null()) result_.format = json_["version"].is_string() ? json_["version"] : Json();
    result_.kv_cache_algorithm = text_of(json_["kv_cache_quant_algo"]);
    const Json& scheme = json_["kv_cache_scheme"];
    if (result_.kv_cache_algorithm.empty() && scheme["num_bits"].as_integer() == 8)
      result_.kv_cache_algorithm = text_of(scheme["type"]) == "int" ? "INT8" : "FP8";
  }

  void add(ModulePattern pattern, const QuantizationScheme& scheme) {
    ModulePatternSet modules;
    modules.add(std::move(pattern));
    result_.rules_.push_back({std::move(modules), scheme});
  }
  void add_everywhere(const QuantizationScheme& scheme) { add({ModulePattern::Kind::kAny, {}}, scheme); }

  void leave(ModulePattern pattern) { result_.left_.add(std::move(pattern)); }
  void leave_all(const Json& names, ModulePattern::Kind kind) {
    for (const Json& item : names.items()) {
      const std::string* name = item.as_string();
      if (!name) continue;
      result_.unconverted.push_back(*name);
      leave(name->starts_with("re:") ? ModulePattern::prefixed(*name) : ModulePattern(kind, *name));
    }
  }

  void read_left() {
    const bool has_globs = result_.method == "modelopt" || result_.method == "quark";
    const auto kind = has_globs ? ModulePattern::Kind::kGlob : ModulePattern::Kind::kWords;
    for (const char* key : {"ignore", "modules_to_not_convert", "ignored_layers", "exclude_modules",
                            "exclude", "llm_int8_skip_modules", "skip_modules", "modules_to_not_quantize"})
      leave_all(json_[key], kind);
  }

  // config_groups of compressed-tensors and modelopt.
  void read_groups(const Json& object, ModulePattern::Kind kind) {
    const Json& sparsity = object["sparsity_config"];
    const bool is_24 =
        text_of(sparsity["sparsity_structure"]) == "2:4" || text_of(object["format"]) == "marlin-24";
    for (const auto& [name, group] : object["config_groups"].members()) {
      const Json& weights = group["weights"];
      if (!weights.is_object()) continue;
      QuantizationScheme scheme = scheme_of_group(group, weights, text_of(object["format"]));
      scheme.has_24_sparsity = is_24;
      ModulePatternSet modules;
      for (const Json& item : group["targets"].items()) {
        const std::string* target = item.as_string();
        if (!target) continue;
        // Class names mean every layer of the class: linear ones are what is asked about.
        const bool is_class = !target->starts_with("re:") && !target->empty() &&
                              std::isupper(static_cast<unsigned char>(target->front())) != 0;
        modules.add(is_class                     ? ModulePattern(ModulePattern::Kind::kAny, {})
                    : target->starts_with("re:") ? ModulePattern::prefixed(*target)
                                                 : ModulePattern(kind, *target));
      }
      if (modules.empty()) modules.add({ModulePattern::Kind::kAny, {}});
      result_.rules_.push_back({std::move(modules), scheme});
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

  static QuantizationScheme scheme_of_group(const Json& group, const Json& weights, std::string format) {
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

  void read_modelopt(const Json& object) {
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
  void add_to_algorithm(const std::string& module, const std::string& algorithm, const Json& layer) {
    auto at = std::find(algorithms_.begin(), algorithms_.end(), algorithm);
    if (at == algorithms_.end()) {
      algorithms_.push_back(algorithm);
      result_.rules_.push_back({{}, scheme_of_algorithm(algorithm, layer)});
      at = algorithms_.end() - 1;
    }
    const auto rule = result_.rules_.size() - static_cast<std::size_t>(algorithms_.end() - at);
    result_.rules_[rule].modules.add({ModulePattern::Kind::kGlob, module});
  }

  void read_bitsandbytes() {
    QuantizationScheme scheme;
    if (json_["load_in_4bit"].as_bool().value_or(false)) {
      const std::string type = text_of(json_["bnb_4bit_quant_type"]);
      result_.format = type.empty() ? "fp4" : type;
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

  void read_float8() {
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

  void read_gptq() {
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
    for (const auto& [module, values] : json_["extra_config"].members()) {
      QuantizationScheme own = scheme;
      if (const auto bits = bits_at(values)) own.bits = bits;
      if (const auto group = values["group_size"].as_integer()) own.group_size = group;
      if (own.bits && *own.bits >= 16) {
        result_.unconverted.push_back(module);
        leave({ModulePattern::Kind::kWords, module});
      } else {
        add({ModulePattern::Kind::kWords, module}, own);
      }
    }
    read_named_blocks(scheme);
    const Json& head = first_of(json_, {"lm_head", "quant_lm_head"});
    if (!head.as_bool().value_or(false)) leave({ModulePattern::Kind::kWords, "lm_head"});
  }

  // modules_in_block_to_quantize: nothing but these, named within a block.
  void read_named_blocks(const QuantizationScheme& scheme) {
    ModulePatternSet modules;
    const auto take = [&](const Json& item) {
      if (const std::string* name = item.as_string()) modules.add({ModulePattern::Kind::kWords, *name});
    };
    for (const Json& step :
         first_of(json_, {"modules_in_block_to_quantize", "inside_layer_modules"}).items()) {
      take(step);
      for (const Json& item : step.items()) take(item);
    }
    if (modules.empty())
      add_everywhere(scheme);
    else
      result_.rules_.push_back({std::move(modules), scheme});
  }

  void read_awq() {
    QuantizationScheme scheme;
    scheme.layout = Layout::kAwq;
    scheme.bits = bits_at(json_);
    scheme.group_size = first_of(json_, {"group_size", "q_group_size"}).as_integer();
    scheme.has_zero_points = json_["zero_point"].as_bool().value_or(true);
    add_everywhere(scheme);
    leave({ModulePattern::Kind::kWords, "lm_head"});
  }

  void read_others() {
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
  void read_torchao(QuantizationScheme& scheme) {
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

  void read_quark(QuantizationScheme& scheme) {
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
  void read_fp4_experts() {
    QuantizationScheme scheme;
    scheme.layout = Layout::kMxfp4;
    scheme.bits = 4;
    scheme.group_size = 32;
    ModulePatternSet modules;
    modules.add({ModulePattern::Kind::kWords, "experts"});
    result_.rules_.insert(result_.rules_.begin(), {std::move(modules), scheme});
  }

  void fault(const std::string& pointer, const Json& value, const char* wanted) {
    constexpr std::size_t kMost = 16, kShown = 60;
    if (result_.faults.size() < kMost)
      result_.faults.push_back(
          {pointer, dump(value).substr(0, kShown) + " was found, " + wanted + " is allowed"});
  }

  // Figures wherever the declaration has them: at its top, in groups of modules, in rules for single ones.
  void check_figures(const Json& object, const std::string& pointer, int depth) {
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
  void forget_layouts() {
    for (Quantization::Rule& rule : result_.rules_) {
      rule.scheme.layout = Layout::kOther;
      rule.scheme.bits.reset();
    }
    result_.group_size = Json();
  }

  const Json& config_;  // the whole of config.json
  const Json& json_;
  Quantization& result_;
  std::vector<std::string> algorithms_;  // the last rules are theirs, in this order
};

SchemeHint QuantizationScheme::hint() const {
  return {bits, group_size, block_rows, block_columns, has_24_sparsity, has_whole_bytes};
}

std::int64_t Quantization::num_tries() const {
  std::int64_t tries = left_.num_tried();
  for (const Rule& rule : rules_) tries += 1 + rule.modules.num_tried();
  return tries;
}

const QuantizationScheme* Quantization::scheme_of(std::string_view module) const {
  if (left_.matches(module)) return nullptr;
  for (const Rule& rule : rules_)
    if (rule.modules.matches(module)) return &rule.scheme;
  return nullptr;
}

const QuantizationScheme* Quantization::main_scheme() const {
  const QuantizationScheme* main = nullptr;
  for (const Rule& rule : rules_)
    if (!main || (rule.scheme.bits && main->bits && *rule.scheme.bits < *main->bits)) main = &rule.scheme;
  return main;
}

std::optional<DType> Quantization::kv_cache_dtype() const {
  const bool is_honoured = method == "compressed-tensors" || method.starts_with("modelopt");
  return is_honoured && lower_case(kv_cache_algorithm) == "fp8" ? std::optional(DType::kF8E4M3)
                                                                : std::nullopt;
}

std::vector<std::string> Quantization::unread_patterns() const {
  std::vector<std::string> unread = left_.unusable();
  for (const Rule& rule : rules_)
    unread.insert(unread.end(), rule.modules.unusable().begin(), rule.modules.unusable().end());
  return unread;
}

std::optional<Quantization> read_quantization(const Json& config, const Json& hf_quant_config) {
  Quantization result;
  const Json& beside = hf_quant_config["quantization"];
  const Json* declaration = find_declaration(config, result.pointer);
  if (!declaration && !beside.is_object()) {
    const Json& value = config[kDeclarationKeys[0]];
    if (value.is_null() || value.is_object()) return std::nullopt;
    result.pointer = "/" + std::string(kDeclarationKeys[0]);
    result.faults.push_back({result.pointer, "quantization_config does not hold an object"});
    return result;
  }
  static const Json kNone;
  QuantizationReader reader(config, declaration ? *declaration : kNone, result);
  if (declaration) reader.read();
  if (beside.is_object()) reader.read_beside(beside);
  return result;
}

}  // namespace plimsoll::model
