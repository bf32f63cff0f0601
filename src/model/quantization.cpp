// SPDX-License-Identifier: Apache-2.0
#include "model/quantization.h"

#include <utility>

#include "model/quantization_reader.h"

namespace plimsoll::model {
namespace {

// The object that declares the quantization, with the place where it stands.
const Json* find_declaration(const Json& config, std::string& pointer) {
  const auto found_in = [&](const Json& object, const std::string& place) -> const Json* {
    for (const std::string_view key : kDeclarationKeys)
      if (is_declaration(key, object[key])) {
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

}  // namespace

bool is_declaration(std::string_view key, const Json& value) {
  if (!value.is_object() || value.size() == 0) return false;
  return key != kMlxKey || (value["bits"].as_integer() && value["group_size"].as_integer());
}

SchemeHint QuantizationScheme::hint() const {
  return {bits, group_size, block_rows, block_columns, has_24_sparsity, has_whole_bytes};
}

std::int64_t Quantization::num_tries() const {
  std::int64_t tries = left_.num_tried();
  for (const Rule& rule : rules_) tries += 1 + rule.modules.num_tried();
  return tries;
}

bool Quantization::can_answer(std::size_t num_questions) const {
  const std::int64_t tries = num_tries();
  return tries == 0 || num_questions <= static_cast<std::size_t>(kMaxTries / tries);
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
  return is_honoured && (kv_cache_algorithm == "FP8" || kv_cache_algorithm == "fp8")
             ? std::optional(DType::kF8E4M3)
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
    const Json& value = config["quantization_config"];
    if (value.is_null() || value.is_object()) return std::nullopt;
    result.pointer = "/quantization_config";
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
