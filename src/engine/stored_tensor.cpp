// SPDX-License-Identifier: Apache-2.0
#include "engine/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "engine/quantized_weights.h"
#include "kernels/kernels.h"
#include "memory/load_quantization.h"
#include "model/stored_weights.h"

namespace plimsoll::engine {
namespace {

Result<StoredMatrix> load_by_scheme(const artifact::Artifact& artifact, const model::Weight& weight,
                                    const model::Quantization& declared) {
  if (const auto* scheme = declared.scheme_of(model::split_name(weight.hf_name).module))
    return load_quantized(artifact, weight, declared, *scheme);
  PLIMSOLL_TRY(const auto stored, load_tensor(artifact, weight));
  PLIMSOLL_CHECK(stored.has_value(), "matrices are not optional");
  return matrix_of(*stored, weight);
}

}  // namespace

Result<std::optional<StoredTensor>> load_tensor(const artifact::Artifact& artifact,
                                                const model::Weight& weight) {
  const artifact::Tensor* tensor = model::find_tensor(artifact, weight);
  const std::string& name = artifact.form() == artifact::Form::kGguf ? weight.gguf_name : weight.hf_name;
  if (!tensor) {
    if (weight.is_optional) return std::optional<StoredTensor>();
    return fail(ErrorCode::kMalformed,
                fmt::format("the model calls for tensor {} of shape [{}], no file has it", name,
                            fmt::join(weight.shape, ", ")),
                artifact.root(), "get the complete model; `plimsoll inspect` lists what is missing");
  }
  const bool is_number = tensor->shape.empty() && weight.shape == std::vector<std::int64_t>{1};
  if (tensor->shape != weight.shape && !is_number)
    return fail(ErrorCode::kMalformed,
                fmt::format("tensor {} has shape [{}], the config calls for [{}]", name,
                            fmt::join(tensor->shape, ", "), fmt::join(weight.shape, ", ")),
                artifact.files()[static_cast<std::size_t>(tensor->file)].path,
                "config and weights belong to different models");
  if (!kernels::can_read(tensor->dtype))
    return fail(ErrorCode::kUnsupported,
                fmt::format("tensor {} is stored as {}, which the engine does not compute with", name,
                            plimsoll::name(tensor->dtype)),
                artifact.root(),
                "use a version of the model stored as bf16, f16, f32 or a supported GGUF type");
  PLIMSOLL_TRY(const auto bytes, artifact.data(*tensor));
  return std::optional<StoredTensor>(StoredTensor{tensor, bytes});
}

model::Weight stack_of(const model::Weight& weight) {
  model::Weight all = weight;
  all.copies = 1;
  all.shape.insert(all.shape.begin(), weight.copies);
  return all;
}

StoredMatrix matrix_of(const StoredTensor& stored, const model::Weight& weight, std::int64_t number) {
  const auto& shape = stored.tensor->shape;
  const std::int64_t outer = shape[shape.size() - 2], inner = shape.back();
  const auto row_bytes = stored_bytes(stored.tensor->dtype, inner);
  PLIMSOLL_CHECK(row_bytes.has_value(), "the artifact admits only rows of whole blocks");
  const std::byte* const data = stored.bytes.data() + number * outer * row_bytes->value;
  const bool becomes_blocks = memory::becomes_blocks(weight);
  if (weight.is_turned)
    return {inner, outer, TurnedRows{stored.tensor->dtype, data, inner}, {}, becomes_blocks};
  return {outer, inner, PlainRows{stored.tensor->dtype, data, row_bytes->value}, {}, becomes_blocks};
}

std::vector<float> floats_of(const StoredTensor& stored) {
  std::vector<float> values(static_cast<std::size_t>(stored.tensor->elements()));
  kernels::select().to_float(stored.tensor->dtype, stored.bytes.data(), stored.tensor->elements(),
                             values.data());
  return values;
}

Result<StoredMatrix> load_matrix(const artifact::Artifact& artifact, const model::Weight& weight,
                                 const std::optional<model::Quantization>& declared) {
  if (declared && !is_stored_plain(artifact, weight)) return load_by_scheme(artifact, weight, *declared);
  PLIMSOLL_TRY(const auto stored, load_tensor(artifact, weight));
  return stored ? matrix_of(*stored, weight) : StoredMatrix();
}

}  // namespace plimsoll::engine
