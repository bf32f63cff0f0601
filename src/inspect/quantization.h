// SPDX-License-Identifier: Apache-2.0
// How are the weights quantized, which modules stayed as they were, and do config and headers agree? Headers
// have the last word; what the config says otherwise is a finding. Pure.
#pragma once

#include <optional>

#include "base/finding.h"
#include "base/json.h"
#include "inspect/subject.h"
#include "model/quantization.h"
#include "model/stored_weights.h"

namespace plimsoll::inspect {

/// The document's object weights.quantization; null for plain models. `stored` has no kinds where there are
/// no weights: the object then says what is declared. For GGUF by the type that most weights have.
Json quantization_json(const Subject& subject, const std::optional<model::Quantization>& declared,
                       const model::StoredWeights& stored);

/// Weights that do not fit together, and every difference between what is declared and what is stored.
void check_quantization(const Subject& subject, const std::optional<model::Quantization>& declared,
                        const model::StoredWeights& stored, Findings& findings);

/// What the declaration alone tells: figures that cannot be, why the bytes of a checkpoint without files are
/// not known, and a cache type that engines take from it. Wants report.weights.
void check_declaration(const Subject& subject, Report& report);

}  // namespace plimsoll::inspect
