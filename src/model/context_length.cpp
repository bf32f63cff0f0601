// SPDX-License-Identifier: Apache-2.0
#include "model/context_length.h"

#include <algorithm>
#include <array>

#include "model/key_reader.h"

namespace plimsoll::model {
namespace {

constexpr std::array<std::string_view, 9> kLengthKeys{
    "max_position_embeddings", "n_positions",         "max_seq_len",    "seq_length", "model_max_length",
    "max_target_positions",    "max_sequence_length", "max_seq_length", "seq_len"};

// Their stated length is the extended one.
constexpr std::array<std::string_view, 5> kAlreadyScaled{"longrope", "llama3", "yarn", "deepseek_yarn",
                                                         "deepseek_llama_scaling"};

RopeScaling scaling_in(const Json& entry, const Json& figures) {
  RopeScaling scaling;
  for (const char* key : {"type", "rope_type"})
    if (const auto* type = entry[key].as_string()) scaling.type = *type;
  if (scaling.type == "su") scaling.type = "longrope";  // Phi-3's first name for it
  if (const auto factor = entry["factor"].as_double(); factor && *factor > 0 && *factor <= kMaxRopeFactor)
    scaling.factor = factor;
  scaling.original = length_in(entry["original_max_position_embeddings"]);
  if (!scaling.original) scaling.original = length_in(figures["original_max_position_embeddings"]);
  return scaling;
}

}  // namespace

std::optional<std::int64_t> length_in(const Json& value) {
  const auto tokens = value.as_integer();
  return tokens && *tokens > 0 && *tokens <= kMaxContext ? tokens : std::nullopt;
}

std::span<const std::string_view> length_keys() {
  return kLengthKeys;
}

std::vector<RopeScaling> rope_scalings(const Json& figures) {
  const Json& dictionary =
      figures["rope_parameters"].is_object() ? figures["rope_parameters"] : figures["rope_scaling"];
  std::vector<RopeScaling> scalings;
  for (const auto& [kind, entry] : dictionary.members())
    if (entry.is_object()) scalings.push_back(scaling_in(entry, figures));
  if (scalings.empty() && dictionary.is_object()) scalings.push_back(scaling_in(dictionary, figures));
  return scalings;
}

std::int64_t scaled_length(std::int64_t tokens, double factor) {
  const double product = static_cast<double>(tokens) * factor;
  return product < static_cast<double>(kMaxContext) ? static_cast<std::int64_t>(product) : kMaxContext;
}

std::optional<std::int64_t> stated_length(const Json& figures) {
  if (const auto tokens = length_in(figures["model_max_length"])) return tokens;
  std::optional<std::int64_t> smallest;
  for (const std::string_view key : kLengthKeys)
    if (const auto tokens = length_in(figures[key])) smallest = std::min(smallest.value_or(*tokens), *tokens);
  return smallest;
}

std::int64_t default_length(const Json& figures, std::int64_t stated) {
  double factor = 1.0;
  bool is_longrope = false;
  for (const RopeScaling& scaling : rope_scalings(figures)) {
    is_longrope |= scaling.type == "longrope";
    if (std::find(kAlreadyScaled.begin(), kAlreadyScaled.end(), scaling.type) == kAlreadyScaled.end())
      factor = scaling.factor.value_or(factor);
  }
  if (is_longrope)
    if (const auto original = length_in(figures["original_max_position_embeddings"])) return *original;
  return scaled_length(stated, factor);
}

std::int64_t default_length(const Json& config, const ModelSpec& spec) {
  if (spec.pooling && spec.pooling->longest_tokens > 0) return spec.pooling->longest_tokens;
  std::string pointer;
  const Json& figures = language_config(config, pointer);
  const auto stated = stated_length(figures);
  if (!stated) return spec.context_tokens();
  const std::int64_t length = default_length(figures, *stated);
  return length > *stated ? std::clamp(spec.context_tokens(), *stated, length) : length;
}

std::int64_t default_length(const artifact::Artifact& artifact, const ModelSpec& spec) {
  const bool is_gguf = artifact.form() == artifact::Form::kGguf;
  return is_gguf ? spec.context_tokens() : default_length(artifact.config(), spec);
}

}  // namespace plimsoll::model
