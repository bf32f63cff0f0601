// SPDX-License-Identifier: Apache-2.0
#include "inspect/declarations.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "inspect/names_list.h"
#include "model/declarations.h"

namespace plimsoll::inspect {
namespace {

using model::Quantization;
using model::QuantizationScheme;

// modelopt lists the same modules by name here and by patterns there; the others copy their lists.
bool leave_others(const Quantization& one, const Quantization& other) {
  if (one.method != other.method || one.method.starts_with("modelopt")) return false;
  const auto sorted = [](std::vector<std::string> names) {
    std::sort(names.begin(), names.end());
    return names;
  };
  return !one.unconverted.empty() && !other.unconverted.empty() &&
         sorted(one.unconverted) != sorted(other.unconverted);
}

// Whether two descriptions cannot both be true of one checkpoint.
bool differ(const Quantization& one, const Quantization& other) {
  const QuantizationScheme *a = one.main_scheme(), *b = other.main_scheme();
  if (!a || !b) return false;
  if (a->bits && b->bits && *a->bits != *b->bits) return true;
  const auto is_known = [](const QuantizationScheme* scheme) {
    return scheme->layout == model::Layout::kFloat8 || scheme->layout == model::Layout::kInt8 ||
           scheme->layout == model::Layout::kGptq || scheme->layout == model::Layout::kAwq;
  };
  if (is_known(a) && is_known(b) && a->layout != b->layout) return true;
  const bool is_awq = a->layout == model::Layout::kAwq && b->layout == model::Layout::kAwq;
  if (is_awq && a->has_zero_points != b->has_zero_points) return true;
  if (one.desc_act.as_bool() && other.desc_act.as_bool() && one.desc_act != other.desc_act) return true;
  if (leave_others(one, other)) return true;
  return a->group_size && b->group_size && *a->group_size != *b->group_size;
}

std::string described(const Quantization& said) {
  std::string text = said.method.empty() ? "a method without a name" : said.method;
  if (const auto* format = said.format.as_string(); format && *format != text) text += " " + *format;
  const QuantizationScheme* scheme = said.main_scheme();
  if (scheme && scheme->bits) text += fmt::format(", {} bits", *scheme->bits);
  if (scheme && scheme->group_size && *scheme->group_size > 0)
    text += fmt::format(", groups of {}", *scheme->group_size);
  if (scheme && scheme->layout == model::Layout::kAwq && !scheme->has_zero_points) text += ", no zero points";
  if (const auto order = said.desc_act.as_bool()) text += *order ? ", desc_act" : ", no desc_act";
  if (!said.unconverted.empty()) text += ", leaving " + names_list(said.unconverted);
  return text;
}

std::string place_of(const Subject& subject, const model::Declaration& declaration) {
  const std::string& file = declaration.file.empty() ? subject.config_file : declaration.file;
  return declaration.pointer.empty() ? file : file + ": " + declaration.pointer;
}

}  // namespace

void check_declarations(const Subject& subject, Findings& findings) {
  const std::vector<model::Declaration> all = model::declarations_of(subject.artifact);
  if (all.empty()) return;
  const model::Declaration& first = all.front();
  const std::string first_place = place_of(subject, first);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (differ(first.said, all[i].said))
      add_check(findings, "QUANT_DECLARATIONS_DIFFER", FindingLevel::kWarning, place_of(subject, all[i]),
                fmt::format("two declarations disagree: {} says {}; here stands {}", first_place,
                            described(first.said), described(all[i].said)),
                "keep the one that describes the weights; engines and the figures here take the first");
  const bool is_beside = first.pointer.empty();
  if (is_beside)
    add_check(
        findings, "QUANT_UNDECLARED", FindingLevel::kWarning, subject.config_file,
        fmt::format("the config has no quantization_config; {} declares {}", first_place,
                    described(first.said)),
        fmt::format("add it to the config as quantization_config with \"quant_method\": \"{}\": loaders "
                    "that read the config alone take the weights for plain ones",
                    first.said.method));
}

}  // namespace plimsoll::inspect
