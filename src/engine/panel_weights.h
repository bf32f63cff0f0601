// SPDX-License-Identifier: Apache-2.0
// The matrices that a step multiplies with, moved into panels (kernels/panels.h) when a model is loaded: in
// parallel, layer by layer, and the pages of the file behind them are let go. The numbers stay as they are.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/weights.h"

namespace plimsoll::engine {

/// Moves every matrix of a type that has panels, or finds them in the folder where they were kept
/// (`packed_cache_dir`; empty: they are not), and keeps them there. A folder that cannot be used costs the
/// keeping, not the start. `quantization`: its name, when one was made at load. A tied embedding stays in the
/// file beside its copy: a step reads a few rows of it. Errors: kNo when the system refuses the memory.
/// Source: docs/formats/panels.md.
struct Packing {
  std::string packed_cache_dir;
  std::string_view quantization;
  const std::function<void(std::string_view)>& on_progress;
};
Status pack_at_load(const artifact::Artifact& artifact, const Packing& packing, ThreadPool& team,
                    ModelWeights& weights);

}  // namespace plimsoll::engine
