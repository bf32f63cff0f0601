// SPDX-License-Identifier: Apache-2.0
// Which layers, how many KV bytes? Runs of the spec's layers and the memory room's formulas over them. The
// context is read in context_checks. Pure.
#pragma once

#include "base/result.h"
#include "inspect/inspect.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// The spec's layers as runs of equal neighbours.
Result<std::vector<LayerRun>> layer_runs(const model::ModelSpec& spec, DType kv_dtype,
                                         DType activation_dtype);

/// The type that activations, and states without a declared one, are kept in.
DType activation_dtype(const model::ModelSpec& spec);

/// The type that keys and values are cached in. `auto` is the model's own type where that has 16 bits, else
/// bf16 (f16 for GGUF). Errors: kUsage for a spelling that is no type.
Result<DType> kv_dtype_of(const Subject& subject, const std::optional<model::ModelSpec>& spec);

/// Fills report.layers and report.kv_cache, which need report.spec and report.context.
Status measure_kv_cache(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
