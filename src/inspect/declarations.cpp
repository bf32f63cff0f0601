// SPDX-License-Identifier: Apache-2.0
#include "inspect/declarations.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

namespace plimsoll::inspect {
namespace {

using model::Quantization;
using model::QuantizationScheme;

constexpr std::array<std::string_view, 3> kKeys{"quantization_config", "compression_config",
                                                "compressed_config"};

// Files that a quantizer writes, and the method that their objects leave unsaid.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kFiles{
    {{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}}};

std::optional<Quantization> read_object(Json object, std::string_view method_if_unsaid = {}) {
  if (object["quant_method"].is_null() && !method_if_unsaid.empty())
    object.set("quant_method", method_if_unsaid);
  return model::read_quantization(Json::object({{"quantization_config", std::move(object)}}), {});
}

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

}  // namespace

std::optional<Declaration> declared_beside(const Subject& subject) {
  if (subject.is_gguf()) return std::nullopt;
  for (const auto& [file, method] : kFiles) {
    const Json& object = subject.artifact.json_file(file);
    if (!object.is_object() || object.size() == 0) continue;
    if (auto said = read_object(object, method)) return Declaration{std::string(file), std::move(*said)};
  }
  return std::nullopt;
}

std::vector<Declaration> declarations_of(const Subject& subject) {
  std::vector<Declaration> all;
  if (subject.is_gguf()) return all;
  const auto take = [&](const Json& object, const std::string& pointer) {
    for (const std::string_view key : kKeys)
      if (object[key].is_object() && object[key].size() > 0)
        if (auto said = read_object(object[key]))
          all.push_back({fmt::format("{}: {}/{}", subject.config_file, pointer, key), std::move(*said)});
  };
  take(subject.artifact.config(), "");
  if (!subject.figures_pointer.empty()) take(subject.figures, subject.figures_pointer);
  const Json& modelopt = subject.artifact.json_file("hf_quant_config.json");
  if (modelopt["quantization"].is_object())
    if (auto said = model::read_quantization({}, modelopt))
      all.push_back({"hf_quant_config.json: /quantization", std::move(*said)});
  if (auto beside = declared_beside(subject)) all.push_back(std::move(*beside));
  return all;
}

void check_declarations(const Subject& subject, Findings& findings) {
  const std::vector<Declaration> all = declarations_of(subject);
  if (all.empty()) return;
  const Declaration& first = all.front();
  for (std::size_t i = 1; i < all.size(); ++i)
    if (differ(first.said, all[i].said))
      add_check(findings, "QUANT_DECLARATIONS_DIFFER", FindingLevel::kWarning, all[i].place,
                fmt::format("two declarations disagree: {} says {}; here stands {}", first.place,
                            described(first.said), described(all[i].said)),
                "keep the one that describes the weights; engines and the figures here take the first");
  const bool is_beside = first.place.find(':') == std::string::npos;
  if (is_beside)
    add_check(
        findings, "QUANT_UNDECLARED", FindingLevel::kWarning, subject.config_file,
        fmt::format("the config has no quantization_config; {} declares {}", first.place,
                    described(first.said)),
        fmt::format("add it to the config as quantization_config with \"quant_method\": \"{}\": loaders "
                    "that read the config alone take the weights for plain ones",
                    first.said.method));
}

}  // namespace plimsoll::inspect
