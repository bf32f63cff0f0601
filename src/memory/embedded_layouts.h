// SPDX-License-Identifier: Apache-2.0
// Which quantized weights does the embedded engine read? Asked before weights are loaded, and by those who
// say what the engine can. Pure functions.
#pragma once

#include "base/result.h"
#include "model/quantization.h"

namespace plimsoll::memory {

/// Whether the engine reads weights that are declared so.
/// Errors: kUnsupported naming the method, layout or width that it does not read; kMalformed when the
/// declaration has faults. Source: docs/formats/quantized_layouts.md.
Status check_embedded_quantization(const model::Quantization& declared);

/// The same for one scheme of the declaration.
Status check_embedded_scheme(const model::Quantization& declared, const model::QuantizationScheme& scheme);

}  // namespace plimsoll::memory
