// SPDX-License-Identifier: Apache-2.0
// What part of the model is a stored tensor, by the names that published models use? Asked once per kind of
// tensor. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/tensor_kinds.h"

namespace plimsoll::inspect {

/// embedding attention ffn experts norm head encoder other. Names of safetensors and of GGUF.
std::string_view group_of(std::string_view name);

/// Stored, but no parameter of the model: tables that are computed anew, masks, corrections of routers that
/// are no trained weights, positions.
bool is_buffer(const model::TensorKind& kind);

/// How many of the kind's tensors belong to layers that predict further tokens (MTP): those under such a
/// name, and the layers from `num_layers` on where the config says that some follow.
std::int64_t count_mtp(const model::TensorKind& kind, std::int64_t num_layers, bool has_more_layers);

}  // namespace plimsoll::inspect
