// SPDX-License-Identifier: Apache-2.0
// Which weight do the tensors of one module make up? A quantized weight is stored as a carrier (its codes)
// and companions (scales, zero points, orders, shapes); their names say which is which, and their shapes must
// agree. Decides from headers, with the config's scheme as the guide; values are read only where the shape
// of the weight is stored as a value. Pure, no ownership beyond its values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"

namespace plimsoll::model {

/// What a stored tensor is to its module.
enum class Part {
  // carriers: they hold the weight's codes
  kWeight,      // .weight, or a parameter under its own name; plain where its dtype is a float's
  kQweight,     // .qweight: GPTQ, AWQ, auto-round
  kPacked,      // .weight_packed: compressed-tensors
  kBlocks,      // _blocks: gpt-oss
  kCompressed,  // .compressed: the values of a sparse weight
  kMarlin,      // .B
  kHqq,         // .W_q
  kData,        // ._weight_qdata (torchao), .weight._data (quanto)
  // companions
  kScale,  // the scale that every group, channel, block or tensor has
  kSecondScale,
  kZeroPoint,
  kOrder,        // g_idx
  kShape,        // holds the weight's shape as values
  kBitmask,      // of a sparse weight
  kAbsmax,       // bitsandbytes
  kQuantMap,     // bitsandbytes: the values that codes stand for
  kNestedScale,  // bitsandbytes: the scale of scales
  kQuantState,   // bitsandbytes: JSON text as bytes
  kRowScale,     // bitsandbytes: SCB
  kTag,          // a value that says no more than how to read the rest
  kActivation,   // scales of inputs, outputs, keys and values
};
constexpr std::size_t kNumParts = static_cast<std::size_t>(Part::kActivation) + 1;
constexpr bool is_carrier(Part part) {
  return part <= Part::kData;
}

struct StoredName {
  std::string_view module;  // model.layers.0.mlp.up_proj
  Part part = Part::kWeight;
  bool has_suffix = false;  // false: a parameter under its own name, which is `module` as a whole
};

/// Splits a tensor's name. Only the group shows whether a companion's name is meant as one.
StoredName split_name(std::string_view name);

/// How the codes of a weight are stored.
enum class Layout {
  kPlain,
  kFloat8,
  kInt8,
  kGptq,
  kAwq,
  kPackedInt,  // compressed-tensors' 32-bit words
  kPackedBytes,
  kNvfp4,
  kMxfp4,
  kMxfp4Blocks,  // gpt-oss
  kBitsandbytes4,
  kBitsandbytes8,
  kMlx,  // 32-bit words under the name `weight`
  kSparse24,
  kOther,
};

struct StoredPart {
  DType dtype = DType::kF32;
  std::span<const std::int64_t> shape;
  std::int64_t elements() const;
};

/// What the config says about the weight; empty where it says nothing.
struct SchemeHint {
  std::optional<int> bits;
  std::optional<std::int64_t> group_size;  // -1: one group
  std::optional<std::int64_t> block_rows, block_columns;
  bool has_24_sparsity = false;
  bool has_whole_bytes = false;  // each code takes a byte, however few bits it uses
};

struct StoredGroup {
  std::array<std::optional<StoredPart>, kNumParts> parts;
  std::vector<std::int64_t> stored_shape;  // values of kShape, or of the quant state; empty when unread
  const std::optional<StoredPart>& operator[](Part part) const {
    return parts[static_cast<std::size_t>(part)];
  }
};

struct DecodedWeight {
  Layout layout = Layout::kPlain;
  int bits = 0;                 // of one code
  std::int64_t group_size = 0;  // codes that share a scale along the input; 0: none or not along it
  std::optional<std::int64_t> elements{};  // of the weight; empty when the tensors do not tell
  std::string fault{};                     // empty when everything fits
};

/// True when this carrier holds codes rather than plain numbers.
bool holds_codes(Part part, const StoredPart& carrier, const StoredGroup& group);

/// The weight that a carrier and its companions make up.
/// Source: docs/formats/quantized_layouts.md.
DecodedWeight decode_stored(Part carrier, const StoredGroup& group, const SchemeHint& hint);

}  // namespace plimsoll::model
