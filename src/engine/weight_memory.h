// SPDX-License-Identifier: Apache-2.0
// What the ways of changing weights at load share: which matrices a step multiplies with, which bytes they
// come from, and memory of their own for what they become. Owns nothing; pure but for reserve_weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/weights.h"

namespace plimsoll::engine {

/// Those of a layer that a step multiplies all its rows with; without those of single latent heads.
std::vector<StoredMatrix*> multiplied_matrices(LayerWeights& layer);

/// All bytes that a matrix of plain numbers is read from.
std::span<const std::byte> source_of(const StoredMatrix& matrix);

/// Memory that goes back to the system as a whole, in large pages where there are. `flag`: what asked for it.
/// Errors: kNo when the system refuses it.
Result<std::shared_ptr<std::byte>> reserve_weights(std::int64_t bytes, const std::string& flag);

}  // namespace plimsoll::engine
