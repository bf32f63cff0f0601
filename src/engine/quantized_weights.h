// SPDX-License-Identifier: Apache-2.0
// Which stored matrix do the tensors of a quantized module make up? Finds codes and companions by their
// names, holds every shape, type and index against the weight and the declared scheme, and hands out views.
// After that no code can lead outside a tensor. Keeps no artifact alive: the engine does.
#pragma once

#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/result.h"
#include "engine/stored_matrix.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::engine {

/// Whether the module's weight lies there as plain numbers, whatever is declared.
bool is_stored_plain(const artifact::Artifact& artifact, const model::Weight& weight);

/// The matrix of `weight` ([rows, columns]) in the layout that `scheme` declares.
/// Errors: kMalformed naming the tensor, what was found and what was expected; kUnsupported for layouts and
/// widths that are not read. Source: docs/formats/quantized_layouts.md.
Result<StoredMatrix> load_quantized(const artifact::Artifact& artifact, const model::Weight& weight,
                                    const model::Quantization& declared,
                                    const model::QuantizationScheme& scheme);

/// One expert's matrix out of a stack in blocks of 32 four-bit floats (gpt-oss).
/// `module`: "model.layers.0.mlp.experts.down_proj"; shapes: blocks [experts, rows, columns/32, 16], scales
/// [experts, rows, columns/32]. Errors: kMalformed as above.
Result<StoredMatrix> load_expert_blocks(const artifact::Artifact& artifact, std::string_view module,
                                        std::int64_t experts, std::int64_t expert, std::int64_t rows,
                                        std::int64_t columns);

}  // namespace plimsoll::engine
