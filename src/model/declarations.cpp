// SPDX-License-Identifier: Apache-2.0
#include "model/declarations.h"

#include <array>
#include <string_view>
#include <utility>

#include "model/model.h"
#include "model/quantization_reader.h"

namespace plimsoll::model {
namespace {

constexpr std::string_view kMlxMethod = "mlx";
constexpr const char* kModeloptFile = "hf_quant_config.json";

// Files that a quantizer writes, and the method that their objects leave unsaid.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kQuantizersFiles{
    {{"quantize_config.json", "gptq"}, {"quant_config.json", "awq"}}};

std::optional<Quantization> read_object(Json object, std::string_view method_if_unsaid = {}) {
  if (object["quant_method"].is_null() && !method_if_unsaid.empty())
    object.set("quant_method", method_if_unsaid);
  return read_quantization(Json::object({{"quantization_config", std::move(object)}}), {});
}

std::optional<Declaration> declared_beside(const artifact::Artifact& artifact) {
  for (const auto& [file, method] : kQuantizersFiles) {
    const Json& object = artifact.json_file(file);
    // Others give their files these names too.
    if (first_of(object, {"bits", "w_bit", "group_size", "q_group_size", "quant_method"}).is_null()) continue;
    if (auto said = read_object(object, method))
      return Declaration{.file = std::string(file), .pointer = {}, .said = std::move(*said)};
  }
  return std::nullopt;
}

bool is_gguf(const artifact::Artifact& artifact) {
  return artifact.form() == artifact::Form::kGguf;
}

}  // namespace

std::vector<Declaration> declarations_of(const artifact::Artifact& artifact) {
  std::vector<Declaration> all;
  if (is_gguf(artifact)) return all;
  const auto take = [&](const Json& object, const std::string& pointer) {
    for (const std::string_view key : kDeclarationKeys)
      if (is_declaration(key, object[key]))
        if (auto said = read_object(object[key], key == kMlxKey ? kMlxMethod : ""))
          all.push_back({{}, pointer + "/" + std::string(key), std::move(*said)});
  };
  take(artifact.config(), "");
  std::string pointer;
  const Json& inner = language_config(artifact.config(), pointer);
  if (!pointer.empty()) take(inner, pointer);
  const Json& modelopt = artifact.json_file(kModeloptFile);
  if (modelopt["quantization"].is_object())
    if (auto said = read_quantization({}, modelopt))
      all.push_back({kModeloptFile, "/quantization", std::move(*said)});
  if (auto beside = declared_beside(artifact)) all.push_back(std::move(*beside));
  return all;
}

std::optional<Quantization> declared_quantization(const artifact::Artifact& artifact) {
  if (is_gguf(artifact)) return std::nullopt;
  if (auto declared = read_quantization(artifact.config(), artifact.json_file(kModeloptFile)))
    return declared;
  auto beside = declared_beside(artifact);
  if (!beside) return std::nullopt;
  beside->said.file = beside->file;
  return std::move(beside->said);
}

}  // namespace plimsoll::model
