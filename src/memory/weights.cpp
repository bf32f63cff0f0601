// SPDX-License-Identifier: Apache-2.0
#include "memory/weights.h"

#include <algorithm>
#include <array>
#include <string>

#include "model/stored_weights.h"

namespace plimsoll::memory {
namespace {

struct FormatRow {
  WeightFormat format;
  std::string_view name;
  int bits;
};
constexpr std::array<FormatRow, 6> kFormats{{
    {WeightFormat::kFloat32, "float32", 32},
    {WeightFormat::kBFloat16, "bf16", 16},
    {WeightFormat::kFloat16, "fp16", 16},
    {WeightFormat::kFp8, "fp8", 8},
    {WeightFormat::kInt8, "int8", 8},
    {WeightFormat::kInt4, "int4", 4},
}};

const FormatRow& row(WeightFormat format) {
  return kFormats[static_cast<std::size_t>(format)];
}

}  // namespace

bool is_computed(const model::Weight& weight) {
  return weight.role != model::Role::kNone && weight.group != model::WeightGroup::kMtp;
}

bool is_left_out(const model::ModelSpec& spec, const model::Weight& weight) {
  if (weight.group == model::WeightGroup::kMtp) return true;
  if (!spec.pooling || is_computed(weight)) return false;
  // An encoder's head for words has a norm of its own.
  const bool is_norm_of_head =
      model::is_encoder(spec) && weight.group == model::WeightGroup::kNorm && weight.layer < 0;
  return weight.group == model::WeightGroup::kHead || is_norm_of_head;
}

std::string_view to_string(WeightFormat format) {
  return row(format).name;
}

int bits_per_weight(WeightFormat format) {
  return row(format).bits;
}

std::optional<WeightFormat> parse_weight_format(std::string_view text) {
  for (const FormatRow& known : kFormats)
    if (known.name == text) return known.format;
  const auto dtype = dtype_from_config(text);
  return dtype ? weight_format(*dtype) : std::nullopt;
}

std::optional<WeightFormat> weight_format(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return WeightFormat::kFloat32;
    case DType::kBF16:
      return WeightFormat::kBFloat16;
    case DType::kF16:
      return WeightFormat::kFloat16;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return WeightFormat::kFp8;
    case DType::kI8:
      return WeightFormat::kInt8;
    default:
      return std::nullopt;
  }
}

Result<Bytes> weights_bytes(std::int64_t parameters, WeightFormat format) {
  const auto bits = checked_product(parameters, bits_per_weight(format));
  if (!bits)
    return fail(ErrorCode::kMalformed,
                std::to_string(parameters) + " parameters are no count whose bytes can be told",
                "config.json", "check the sizes in the config");
  return Bytes(*bits / 8 + (*bits % 8 != 0 ? 1 : 0));
}

std::optional<Bytes> stored_weights_bytes(const artifact::Artifact& artifact, const model::ModelSpec& spec) {
  if (artifact.tensors().empty()) return std::nullopt;
  // Where each weight is known by its name in the file, what else lies there is not loaded.
  const bool is_known =
      !spec.weights.empty() && std::ranges::all_of(spec.weights, [&](const model::Weight& weight) {
        return is_computed(weight) || is_left_out(spec, weight);
      });
  Bytes total;
  if (!is_known) {
    for (const artifact::Tensor& tensor : artifact.tensors()) total += Bytes(tensor.bytes);
    return total;
  }
  for (const model::Weight& weight : spec.weights)
    if (is_computed(weight))
      for (const artifact::Tensor* tensor : model::tensors_of(artifact, weight))
        total += Bytes(tensor->bytes);  // the artifact holds these within the file's size
  return total;
}

}  // namespace plimsoll::memory
