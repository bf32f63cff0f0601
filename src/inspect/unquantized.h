// SPDX-License-Identifier: Apache-2.0
// Which modules of a quantized checkpoint stayed as they were? Told in as few words as say it exactly:
// a module that stayed so in all layers by its pattern, a subtree without any codes by its root. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/stored_weights.h"

namespace plimsoll::inspect {

/// "lm_head", "model.layers.*.self_attn", "model.layers.0.mlp.experts.*.up_proj". Norms, biases and buffers
/// are not listed: nobody quantizes them.
std::vector<std::string> unquantized_modules(const model::StoredWeights& stored);

/// A kind of tensors that a quantizer could have taken: a matrix, or a stack of them.
bool is_quantizable(const model::TensorKind& tensors, const model::StoredKind& kind);

/// The module of one layer: the pattern with its first number.
std::string module_in_layer(const std::string& pattern, std::int64_t number);

}  // namespace plimsoll::inspect
