// SPDX-License-Identifier: Apache-2.0
// Which tensor of the artifact is a weight, and does it have the shape that the spec calls for? Views of the
// artifact, which has to outlive them; nothing is copied but vectors.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "artifact/artifact.h"
#include "base/result.h"
#include "engine/stored_matrix.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::engine {

struct StoredTensor {
  const artifact::Tensor* tensor = nullptr;
  std::span<const std::byte> bytes;
};

/// The tensor a weight stands for; nothing when it is optional and absent.
/// Errors: kMalformed naming the tensor when it is missing or of another shape; kUnsupported for a stored
/// type that is not read.
Result<std::optional<StoredTensor>> load_tensor(const artifact::Artifact& artifact,
                                                const model::Weight& weight);

/// The tensor [copies, ...] that holds all copies of a weight.
model::Weight stack_of(const model::Weight& weight);

/// Matrix `number` of a tensor [..., rows, columns]; [..., columns, rows] where the weight is turned.
StoredMatrix matrix_of(const StoredTensor& stored, const model::Weight& weight, std::int64_t number = 0);

std::vector<float> floats_of(const StoredTensor& stored);

/// A matrix in whatever form the file has it; no rows when it is optional and absent. Errors: as load_tensor
/// and load_quantized.
Result<StoredMatrix> load_matrix(const artifact::Artifact& artifact, const model::Weight& weight,
                                 const std::optional<model::Quantization>& declared);

}  // namespace plimsoll::engine
