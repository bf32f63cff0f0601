// SPDX-License-Identifier: Apache-2.0
// The matrices of linear layers in blocks of few bits, made when a model is loaded: `--quantization`. Reads
// the mapped weights once, in parallel; the blocks lie in memory of their own.
#pragma once

#include <functional>
#include <string_view>

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/weights.h"

namespace plimsoll::engine {

/// Replaces every matrix that memory::becomes_blocks names by its blocks, and lets go of the pages of the
/// file behind it. weights.stored becomes what is then held. Errors: kMalformed naming the layer for a weight
/// that is not finite or has no scale of 16 bits; kNo when the system refuses the memory.
/// Source: docs/formulas/load_quantization.md.
Status quantize_at_load(const artifact::Artifact& artifact, DType block, ThreadPool& team,
                        const std::function<void(std::string_view)>& on_progress, ModelWeights& weights);

}  // namespace plimsoll::engine
