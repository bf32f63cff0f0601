// SPDX-License-Identifier: Apache-2.0
// As which tensors is one weight stored? The layouts of model/stored_layout.h the other way round: from a
// weight's shape and the declared scheme to codes, scales and the rest. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "model/quantization.h"

namespace plimsoll::memory {

struct StoredTensor {
  std::string_view ending;  // of its name: "qweight", "weight_scale"
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  bool is_companion = false;  // scales, zero points and such
  bool is_single = false;     // a companion of one number for each matrix
  // Elements more or less, where a number is written out whose length no config tells.
  std::int64_t within = 0;
};

/// The tensors as which one weight is stored under that scheme; nothing for layouts whose sizes hang on more
/// than the shape.
/// Shapes: [out, in], or stacks of them [experts, out, in].
/// Source: docs/formats/quantized_layouts.md.
/// `plain` is the weights' type before; some layouts write its name down.
std::optional<std::vector<StoredTensor>> stored_tensors(std::span<const std::int64_t> shape,
                                                        const model::QuantizationScheme& scheme,
                                                        DType plain = DType::kBF16);

}  // namespace plimsoll::memory
