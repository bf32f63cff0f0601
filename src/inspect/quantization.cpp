// SPDX-License-Identifier: Apache-2.0
#include "inspect/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "inspect/declarations.h"
#include "inspect/names_list.h"
#include "inspect/parameter_groups.h"
#include "inspect/unquantized.h"
#include "memory/kv_cache.h"
#include "memory/quantized_weights.h"
#include "model/declarations.h"

namespace plimsoll::inspect {
namespace {

Json names_json(const std::vector<std::string>& names) {
  Json list = Json::array();
  for (const std::string& name : names) list.push_back(name);
  return list;
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

Json gguf_quantization(const artifact::Artifact& artifact, const model::StoredWeights& stored) {
  std::vector<std::pair<DType, std::int64_t>> elements;
  for (const model::TensorKind& kind : stored.tensors.kinds) {
    if (!is_block_quantized(kind.dtype)) continue;
    auto row =
        std::find_if(elements.begin(), elements.end(), [&](const auto& e) { return e.first == kind.dtype; });
    if (row == elements.end()) row = elements.insert(row, {kind.dtype, 0});
    row->second = model::capped_sum(row->second, kind.total_elements());
  }
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
                       {"unquantized_modules", names_json(unquantized_modules(stored))}});
}

// The carrier that holds most weights stands for the rest where the config is silent.
const model::StoredKind* main_carrier(const model::StoredWeights& stored) {
  const model::StoredKind* main = nullptr;
  for (const model::StoredKind& kind : stored.kinds)
    if (kind.is_quantized && kind.elements && (!main || *kind.elements > *main->elements)) main = &kind;
  return main;
}

// Where the config stays silent about its method, the layout names it.
std::string method_by_layout(model::Layout layout) {
  switch (layout) {
    case model::Layout::kGptq:
      return "gptq";
    case model::Layout::kAwq:
      return "awq";
    case model::Layout::kFloat8:
      return "fp8";
    case model::Layout::kBitsandbytes4:
    case model::Layout::kBitsandbytes8:
      return "bitsandbytes";
    case model::Layout::kMxfp4Blocks:
      return "mxfp4";
    case model::Layout::kMlx:
      return "mlx";
    case model::Layout::kPackedInt:
    case model::Layout::kSparse24:
      return "compressed-tensors";
    default:
      return {};
  }
}

std::string declared_in(const Subject& subject, const model::Quantization& declared) {
  if (!declared.file.empty()) return declared.file;
  return declared.pointer.empty() ? "hf_quant_config.json: /quantization"
                                  : subject.config_file + ": " + declared.pointer;
}

// Modules that differ from what the config says of them.
struct ModuleDifferences {
  std::vector<std::string> quantized_against;  // the config leaves them, the headers hold codes
  std::vector<std::string> plain_against;      // the config quantizes them and so are other layers of them
  std::unordered_set<std::string> seen;        // of either
  std::int64_t tries = 0;                      // of patterns, for all modules so far

  bool is_cut() const { return tries > model::Quantization::kMaxTries; }
};

void compare_kind(const model::Quantization& declared, const model::StoredWeights& stored, std::size_t index,
                  const std::unordered_set<std::string_view>& quantized_patterns,
                  ModuleDifferences& differences) {
  const model::StoredKind& kind = stored.kinds[index];
  const model::TensorKind& tensors = stored.tensors.kinds[index];
  const bool is_plain = is_quantizable(tensors, kind);
  if (!kind.is_quantized && !is_plain) return;
  // A module that is plain everywhere is one that no quantizer takes (routers, embeddings, encoders); configs
  // do not always name those.
  if (is_plain && !quantized_patterns.contains(kind.module)) return;
  const std::int64_t num_tries = 2 * declared.num_tries();
  for (const model::NumberRun& run : tensors.runs) {
    if (differences.tries += num_tries; differences.is_cut()) return;
    // Experts of one layer share their fate, so that one number stands for all.
    std::string module = module_in_layer(kind.module, run.number);
    std::string example = module;
    std::replace(example.begin(), example.end(), '*', '0');
    auto& list = is_plain ? differences.plain_against : differences.quantized_against;
    const bool is_left = declared.leaves(example);
    const bool differs = is_plain ? !is_left && declared.scheme_of(example) : is_left;
    if (differs && differences.seen.insert(module).second) list.push_back(std::move(module));
  }
}

ModuleDifferences compare_modules(const model::Quantization& declared, const model::StoredWeights& stored) {
  std::unordered_set<std::string_view> quantized_patterns;
  for (const model::StoredKind& kind : stored.kinds)
    if (kind.is_quantized) quantized_patterns.insert(kind.module);
  ModuleDifferences differences;
  for (std::size_t i = 0; i < stored.kinds.size(); ++i)
    compare_kind(declared, stored, i, quantized_patterns, differences);
  return differences;
}

void tell_faults(const model::StoredWeights& stored, Findings& findings) {
  for (const model::StoredFault& fault : stored.faults)
    add_check(findings, "QUANT_LAYOUT", FindingLevel::kError, fault.tensor, fault.message,
              "quantize the model again, or use the config of these weights");
}

void tell_unread_patterns(const Subject& subject, const model::Quantization& declared, Findings& findings) {
  const std::vector<std::string> unread = declared.unread_patterns();
  if (unread.empty()) return;
  findings.push_back(
      {"QUANT_PATTERN", FindingLevel::kInfo, FindingKind::kUnsupported, declared_in(subject, declared),
       fmt::format("{} expressions for modules are not read here: {}", unread.size(), names_list(unread)),
       "compare unquantized_modules with them by eye"});
}

void tell_many_patterns(const Subject& subject, const model::Quantization& declared, Findings& findings) {
  findings.push_back(
      {"QUANT_MODULES_MANY", FindingLevel::kWarning, FindingKind::kUnsupported,
       declared_in(subject, declared),
       fmt::format("each of the modules would have to be held against {} patterns and rules; not all were",
                   declared.num_tries()),
       "name modules in full, or by fewer patterns"});
}

// fp8 and int8 have the same names and shapes: only the dtype tells them apart.
void check_code_dtype(const Subject& subject, const model::Quantization& declared,
                      const model::StoredWeights& stored, Findings& findings) {
  const model::QuantizationScheme* scheme = declared.main_scheme();
  const model::StoredKind* carrier = main_carrier(stored);
  if (!scheme || !carrier) return;
  const auto is_eight_bit = [](model::Layout layout) {
    return layout == model::Layout::kFloat8 || layout == model::Layout::kInt8;
  };
  const model::Layout found = carrier->weight.layout;
  if (!is_eight_bit(scheme->layout) || !is_eight_bit(found) || scheme->layout == found) return;
  const auto text = [](model::Layout layout) { return layout == model::Layout::kFloat8 ? "fp8" : "int8"; };
  add_check(findings, "QUANT_FORMAT_DIFFERS", FindingLevel::kError, declared_in(subject, declared),
            fmt::format("the config says {}, the weights are {}", text(scheme->layout), text(found)),
            "use the config of these weights");
}

// What --kv-cache-dtype says, engines do; the declaration has a say for `auto` alone.
void tell_kv_cache(const Subject& subject, const model::Quantization& declared, Report& report) {
  if (declared.kv_cache_algorithm.empty() || subject.options.kv_cache_dtype != "auto") return;
  std::string message =
      fmt::format("the checkpoint declares {} keys and values, which ", declared.kv_cache_algorithm);
  const auto dtype = declared.kv_cache_dtype();
  if (dtype)
    message += "vLLM 0.33 takes for auto";
  else
    message += "vLLM does not take from " + (declared.method.empty() ? "an unnamed method" : declared.method);
  if (dtype && report.spec && report.kv_cache)
    if (const auto bytes = memory::kv_bytes_per_token(*report.spec, *dtype))
      message += fmt::format(": {} bytes per token then, where {} are counted here", bytes->value,
                             report.kv_cache->bytes_per_token.value);
  report.findings.push_back(
      {"KV_CACHE_DECLARED", FindingLevel::kInfo, FindingKind::kCheckFailed, declared_in(subject, declared),
       std::move(message),
       "give --kv-cache-dtype fp8 to count them so, or bfloat16 to have the engine keep 16 bit"});
}

}  // namespace

Json quantization_json(const Subject& subject, const std::optional<model::Quantization>& declared,
                       const model::StoredWeights& stored) {
  if (subject.is_gguf()) return gguf_quantization(subject.artifact, stored);
  const model::StoredKind* carrier = main_carrier(stored);
  if (!declared && !carrier) return {};
  const model::Quantization none;
  const model::Quantization& said = declared ? *declared : none;
  const model::QuantizationScheme* scheme = said.main_scheme();
  Json method = said.method.empty() ? Json() : Json(said.method);
  if (method.is_null() && carrier)
    if (const std::string name = method_by_layout(carrier->weight.layout); !name.empty()) method = name;
  Json bits = scheme && scheme->bits ? Json(*scheme->bits) : Json();
  if (bits.is_null() && carrier && carrier->weight.bits > 0) bits = carrier->weight.bits;
  Json group_size = said.group_size;
  if (group_size.is_null() && scheme && scheme->group_size) group_size = *scheme->group_size;
  if (group_size.is_null() && carrier && carrier->weight.group_size > 0 && carrier->weight.bits < 8)
    group_size = carrier->weight.group_size;
  return Json::object({{"method", std::move(method)},
                       {"format", said.format},
                       {"bits", std::move(bits)},
                       {"group_size", std::move(group_size)},
                       {"version", said.version},
                       {"desc_act", said.desc_act},
                       {"unquantized_modules",
                        names_json(stored.kinds.empty() ? said.unconverted : unquantized_modules(stored))}});
}

void check_quantization(const Subject& subject, const std::optional<model::Quantization>& declared,
                        const model::StoredWeights& stored, Findings& findings) {
  if (subject.is_gguf()) return;
  tell_faults(stored, findings);
  if (!declared) {
    if (const auto* carrier = main_carrier(stored))
      add_check(findings, "QUANT_UNDECLARED", FindingLevel::kWarning, subject.config_file,
                fmt::format("{} holds quantized weights, but the config has no quantization_config",
                            carrier->module),
                "add the quantization_config of the original repository");
    return;
  }
  tell_unread_patterns(subject, *declared, findings);
  if (!stored.has_quantized()) {
    if (memory::is_for_cache_alone(*declared)) return;
    add_check(findings, "QUANT_NOT_STORED", FindingLevel::kWarning, declared_in(subject, *declared),
              fmt::format("{} says {}, but no stored weight is quantized",
                          declared->file.empty() ? "the config" : declared->file,
                          declared->method.empty() ? "the model is quantized" : declared->method),
              declared->file.empty() ? "remove quantization_config, or download the quantized weights"
                                     : "remove " + declared->file + ", or download the quantized weights");
    return;
  }
  check_code_dtype(subject, *declared, stored, findings);
  const ModuleDifferences differences = compare_modules(*declared, stored);
  if (differences.is_cut() || stored.has_unasked) tell_many_patterns(subject, *declared, findings);
  if (!differences.quantized_against.empty())
    add_check(findings, "QUANT_MODULES_DIFFER", FindingLevel::kWarning, declared_in(subject, *declared),
              fmt::format("{} modules that the config leaves as they are hold quantized weights: {}",
                          differences.quantized_against.size(), names_list(differences.quantized_against)),
              "engines read these modules as plain weights; use the config of these weights");
  if (!differences.plain_against.empty())
    add_check(findings, "QUANT_MODULES_DIFFER", FindingLevel::kWarning, declared_in(subject, *declared),
              fmt::format("{} modules that the config quantizes stayed as they were: {}",
                          differences.plain_against.size(), names_list(differences.plain_against)),
              "engines read these modules as quantized weights; name them in the config");
}

void check_declaration(const Subject& subject, Report& report) {
  const auto declared = model::declared_quantization(subject.artifact);
  if (!declared) return;
  check_declarations(subject, report.findings);
  for (const model::QuantizationFault& fault : declared->faults)
    report.findings.push_back(
        {"QUANT_VALUE", FindingLevel::kError, FindingKind::kMalformed,
         declared->file.empty() ? subject.config_file + ": " + fault.pointer : declared->file, fault.message,
         std::string(kCorrect)});
  const std::string method = declared->method.empty() ? "an unnamed method" : declared->method;
  const bool has_files = !subject.artifact.tensors().empty();
  if (!has_files && declared->faults.empty()) {
    tell_unread_patterns(subject, *declared, report.findings);
    if (report.spec && !memory::can_ask_about(*report.spec, *declared))
      tell_many_patterns(subject, *declared, report.findings);
    if (report.spec && report.spec->has_all_weights && !report.weights.bytes)
      report.findings.push_back(
          {"QUANT_UNCOUNTED", FindingLevel::kWarning, FindingKind::kUnsupported,
           declared_in(subject, *declared),
           fmt::format("the bytes of weights quantized by {} cannot be told from this config", method),
           "give the weight files: their headers hold the exact sizes"});
  }
  tell_kv_cache(subject, *declared, report);
}

}  // namespace plimsoll::inspect
