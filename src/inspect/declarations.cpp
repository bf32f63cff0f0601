// SPDX-License-Identifier: Apache-2.0
#include "inspect/declarations.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "model/declarations.h"

namespace plimsoll::inspect {
namespace {

using model::Quantization;
using model::QuantizationScheme;

// Whether two descriptions cannot both be true of one checkpoint.
bool differ(const Quantization& one, const Quantization& other) {
  const QuantizationScheme *a = one.main_scheme(), *b = other.main_scheme();
  if (!a || !b) return false;
  if (a->bits && b->bits && *a->bits != *b->bits) return true;
  const auto is_known = [](const QuantizationScheme* scheme) {
    return scheme->layout == model::Layout::kFloat8 || scheme->layout == model::Layout::kInt8;
  };
  if (is_known(a) && is_known(b) && a->layout != b->layout) return true;
  return a->group_size && b->group_size && *a->group_size != *b->group_size;
}

std::string described(const Quantization& said) {
  std::string text = said.method.empty() ? "a method without a name" : said.method;
  if (const auto* format = said.format.as_string(); format && *format != text) text += " " + *format;
  const QuantizationScheme* scheme = said.main_scheme();
  if (scheme && scheme->bits) text += fmt::format(", {} bits", *scheme->bits);
  if (scheme && scheme->group_size && *scheme->group_size > 0)
    text += fmt::format(", groups of {}", *scheme->group_size);
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
