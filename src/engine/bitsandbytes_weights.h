// SPDX-License-Identifier: Apache-2.0
// What do bitsandbytes' four-bit tensors say? Reads the quant state and the books beside the codes. Views of
// an artifact, which has to outlive them.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/module_tensors.h"

namespace plimsoll::engine {

/// Errors: kMalformed when a tensor is absent, or does not go with a matrix of [rows, columns].
/// Source: docs/formats/quantized_layouts.md.
Result<BookRows> load_book(const ModuleTensors& tensors, std::int64_t rows, std::int64_t columns);

}  // namespace plimsoll::engine
