// SPDX-License-Identifier: Apache-2.0
// As which tensors does a checkpoint store its weights, by the config alone? The layouts of
// model/stored_layout.h the other way round: from a weight's shape and the declared scheme to codes, scales
// and the rest. An answer where no files are at hand; with files, their headers say it. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/units.h"
#include "model/model.h"
#include "model/quantization.h"

namespace plimsoll::memory {

struct StoredTensor {
  std::string_view ending;  // of its name: "qweight", "weight_scale"
  DType dtype = DType::kF32;
  std::int64_t elements = 0;
  bool is_companion = false;  // scales, zero points and such
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

/// What a checkpoint of this model would hold, as its config declares it.
struct StoredCheckpoint {
  Bytes bytes;
  Bytes within;                   // more or less; 0 where the sum is exact
  std::int64_t elements = 0;      // as the hub shows them: codes as stored, a byte of gpt-oss's blocks as two
  std::int64_t scales = 0;        // companions
  std::int64_t block_scales = 0;  // companions of gpt-oss's blocks
  std::int64_t packed = 0;        // codes as stored less the weights that they hold
  std::int64_t mtp = 0;           // weights of prediction layers
  std::int64_t buffers = 0;       // stored, but no parameters
};

/// Whether the declaration speaks of keys and values alone, and the weights are plain.
bool is_for_cache_alone(const model::Quantization& quantization);

/// Nothing when it cannot be known: weights of some part that are not listed, layouts without a formula,
/// patterns that name modules by other names than the spec's, or more of them than can be tried.
std::optional<StoredCheckpoint> stored_checkpoint(const model::ModelSpec& spec,
                                                  const std::optional<model::Quantization>& quantization);

/// The bytes were every weight of 32 bits that is not quantized: for a config that names no dtype, which
/// engines take for 16 bits. Nothing for one that names it, and where stored_checkpoint has nothing.
std::optional<Bytes> most_checkpoint_bytes(const model::ModelSpec& spec,
                                           const std::optional<model::Quantization>& quantization);

/// Whether all weights of the spec can be held against the declaration's patterns in reasonable time.
bool can_ask_about(const model::ModelSpec& spec, const model::Quantization& quantization);

/// The scheme that a weight of the spec is stored in; null where it stays as declared.
const model::QuantizationScheme* scheme_of(const model::Weight& weight,
                                           const model::Quantization& quantization);

}  // namespace plimsoll::memory
