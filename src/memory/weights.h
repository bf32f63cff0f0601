// SPDX-License-Identifier: Apache-2.0
// How many bytes do the weights take, by the config alone?
// An answer for checkpoints that are not at hand; with files, their headers say it exactly. Pure functions.
#pragma once

#include <optional>
#include <string_view>

#include "artifact/artifact.h"
#include "base/result.h"
#include "base/units.h"
#include "model/model.h"

namespace plimsoll::memory {

/// Whether the embedded engine computes with a weight: those of prediction layers lie idle.
bool is_computed(const model::Weight& weight);
/// Whether it is right that the engine leaves a weight out: prediction layers, and heads of embedding models.
bool is_left_out(const model::ModelSpec& spec, const model::Weight& weight);

/// How a parameter is stored, scales and zero points not counted.
enum class WeightFormat { kFloat32, kBFloat16, kFloat16, kFp8, kInt8, kInt4 };
/// float32 bf16 fp16 fp8 int8 int4
std::string_view to_string(WeightFormat format);
/// The same names, and bfloat16, float16, half, f16, fp32, f32.
std::optional<WeightFormat> parse_weight_format(std::string_view text);
/// The format of a declared dtype; nothing when parameters are not stored so.
std::optional<WeightFormat> weight_format(DType dtype);
int bits_per_weight(WeightFormat format);

/// Bytes of that many parameters, rounded up to whole bytes.
/// Errors: kMalformed when the count is negative or the bytes do not fit 63 bits.
/// Source: docs/formulas/weights.md.
Result<Bytes> weights_bytes(std::int64_t parameters, WeightFormat format);

/// Bytes of the tensors that the engine uses, as stored: those that the spec calls for, buffers included; all
/// tensors where some weight has no role of its own (experts, states, encoders). A quantized weight counts
/// with all companions of its module. Nothing when there are no weight files. What is absent counts nothing;
/// `inspect` and the engine name it.
std::optional<Bytes> stored_weights_bytes(const artifact::Artifact& artifact, const model::ModelSpec& spec);

}  // namespace plimsoll::memory
