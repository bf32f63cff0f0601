// SPDX-License-Identifier: Apache-2.0
// The shapes of each layout, one function per carrier.
#include "model/stored_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/division.h"
#include "base/units.h"
#include "model/tensor_kinds.h"

namespace plimsoll::model {
namespace {

using Shape = std::span<const std::int64_t>;

std::int64_t product(Shape shape) {
  std::int64_t elements = 1;
  for (const std::int64_t dimension : shape) elements = capped_product(elements, dimension);
  return elements;
}

std::string text_of(Shape shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::string text_of(const StoredPart& part) {
  return fmt::format("{} {}", name(part.dtype), text_of(part.shape));
}

std::int64_t bits_of(DType dtype) {
  return info(dtype).block_bytes * 8 / info(dtype).block_elements;
}

bool is_plain_float(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

bool is_float8(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2;
}

bool is_exponent(DType dtype) {  // e8m0, also written as plain bytes
  return dtype == DType::kF8E8M0 || dtype == DType::kU8;
}

// Codes of `bits` bits that fill the carrier's bytes, counted along its last dimension.
std::optional<std::int64_t> codes_per_row(const StoredPart& carrier, int bits) {
  if (carrier.shape.empty() || bits <= 0) return std::nullopt;
  const auto row_bits = checked_product(carrier.shape.back(), bits_of(carrier.dtype));
  return row_bits ? std::optional(*row_bits / bits) : std::nullopt;
}

// A scale dimension covers a weight dimension when it is one for all, one for each, or one for each block.
bool covers(std::int64_t scale, std::int64_t weight, std::int64_t block) {
  if (scale == 1 || scale == weight) return true;
  if (block > 0) return scale == divided_up(weight, block);
  return scale > 0 && scale < weight && divided_up(weight, divided_up(weight, scale)) == scale;
}

// Scales per tensor, per expert, per channel or per block of a weight that is stored in its own shape.
bool scale_fits(Shape weight, Shape scale, const SchemeHint& hint) {
  if (product(scale) == 1) return true;
  if (scale.size() > weight.size()) return false;
  if (scale.size() < weight.size())  // [out] or [experts]; [out] of a weight that is stored as [in, out]
    return std::equal(scale.begin(), scale.end(), weight.begin()) ||
           (scale.size() == 1 && scale[0] == weight.back());
  for (std::size_t i = 0; i < weight.size(); ++i) {
    const std::size_t from_end = weight.size() - i;
    const std::int64_t block = from_end == 1   ? hint.block_columns.value_or(0)
                               : from_end == 2 ? hint.block_rows.value_or(0)
                                               : 0;
    if (!covers(scale[i], weight[i], block)) return false;
  }
  return true;
}

// One scale for each `group` codes of the last dimension, the others one for one.
bool has_groups_of(Shape weight, Shape scale, std::int64_t group) {
  return scale.size() == weight.size() && !weight.empty() &&
         std::equal(weight.begin(), weight.end() - 1, scale.begin()) &&
         scale.back() == divided_up(weight.back(), group);
}

void take_group_size(std::int64_t input, std::int64_t groups, DecodedWeight& weight) {
  if (groups > 1) weight.group_size = divided_up(input, groups);
}

DecodedWeight fault(DecodedWeight weight, std::string text) {
  weight.fault = std::move(text);
  return weight;
}

std::string bits_fault(int bits, int declared) {
  return fmt::format("the shapes are those of {}-bit codes, the config says {} bits", bits, declared);
}

// qweight [in*bits/32, out] (GPTQ), [in, out*bits/32] (AWQ gemm) or [out, in*bits/32] (AWQ gemv).
DecodedWeight decode_qweight(const StoredGroup& group, const SchemeHint& hint) {
  DecodedWeight weight{.layout = Layout::kGptq};
  const StoredPart& codes = *group[Part::kQweight];
  const auto& scales = group[Part::kScale];
  if (codes.shape.size() != 2) return fault(weight, "qweight is " + text_of(codes) + ", not a matrix");
  if (!scales || scales->shape.size() != 2) {
    if (hint.bits && *hint.bits > 0)
      weight.elements = capped_product(codes.elements(), bits_of(codes.dtype)) / *hint.bits;
    return fault(weight, "there are no scales to its qweight");
  }
  const std::int64_t rows = codes.shape[0], columns = codes.shape[1], word = bits_of(codes.dtype);
  const std::int64_t groups = scales->shape[0], outputs = scales->shape[1];
  const auto& order = group[Part::kOrder];
  std::int64_t inputs = 0;
  if (columns == outputs) {
    const std::int64_t row_bits = capped_product(rows, word);
    if (order && !order->shape.empty())
      inputs = order->shape[0];
    else if (hint.bits && *hint.bits > 0)
      inputs = row_bits / *hint.bits;
    else if (hint.group_size && *hint.group_size > 0)
      inputs = capped_product(groups, *hint.group_size);
    if (inputs > 0 && row_bits % inputs == 0)
      weight.bits = static_cast<int>(std::min<std::int64_t>(row_bits / inputs, 64));
  } else if (columns > 0 && outputs > 0 && outputs % columns == 0) {
    weight.layout = Layout::kAwq;
    inputs = rows;
    weight.bits = static_cast<int>(word / (outputs / columns));
  } else if (hint.bits && *hint.bits > 0) {  // gemv: scales are padded, so the codes alone tell
    weight.layout = Layout::kAwq;
    weight.bits = *hint.bits;
    weight.elements = capped_product(codes.elements(), word) / weight.bits;
    weight.group_size = std::max<std::int64_t>(hint.group_size.value_or(0), 0);
    return weight;
  }
  if (inputs <= 0 || weight.bits <= 0)
    return fault(weight,
                 fmt::format("qweight {} does not go with scales {}", text_of(codes), text_of(*scales)));
  weight.elements = capped_product(inputs, outputs);
  take_group_size(inputs, groups, weight);
  if (hint.bits && *hint.bits != weight.bits) return fault(weight, bits_fault(weight.bits, *hint.bits));
  if (hint.group_size && *hint.group_size > 0 && groups != divided_up(inputs, *hint.group_size))
    return fault(weight, fmt::format("{} groups for {} inputs, the config says groups of {}", groups, inputs,
                                     *hint.group_size));
  if (const auto& zeros = group[Part::kZeroPoint];
      zeros &&
      product(zeros->shape) !=
          capped_product(groups, divided_up(capped_product(outputs, weight.bits), bits_of(zeros->dtype))))
    return fault(weight, fmt::format("qzeros {} are not those of {} groups and {} outputs", text_of(*zeros),
                                     groups, outputs));
  return weight;
}

// compressed-tensors' weight_packed: words of 32 bits, or bytes of two codes.
DecodedWeight decode_packed(const StoredGroup& group, const SchemeHint& hint) {
  const StoredPart& codes = *group[Part::kPacked];
  const auto& scale = group[Part::kScale];
  DecodedWeight weight{.layout = codes.dtype == DType::kU8 ? Layout::kPackedBytes : Layout::kPackedInt};
  weight.bits = hint.bits.value_or(codes.dtype == DType::kU8 ? 4 : 0);
  if (codes.shape.empty()) return fault(weight, "weight_packed is a single number");
  std::vector<std::int64_t> logical(codes.shape.begin(), codes.shape.end());
  if (!group.stored_shape.empty()) {
    logical = group.stored_shape;
    if (weight.bits == 0 && logical.back() > 0)
      weight.bits = static_cast<int>(std::min<std::int64_t>(
          capped_product(codes.shape.back(), bits_of(codes.dtype)) / logical.back(), 64));
  } else if (const auto codes_in_row = codes_per_row(codes, weight.bits)) {
    logical.back() = *codes_in_row;
  }
  if (weight.bits <= 0) return fault(weight, "nothing says how many bits a code of weight_packed has");
  weight.elements = product(logical);
  if (hint.has_24_sparsity) {  // every other code is left out
    weight.layout = Layout::kSparse24;
    if (group.stored_shape.empty())
      weight.elements =
          capped_product(capped_product(codes.elements(), bits_of(codes.dtype)) / weight.bits, 2);
    return weight;
  }
  if (!scale) return fault(weight, "there is no weight_scale to its weight_packed");
  const std::int64_t words = bits_of(codes.dtype);
  const std::int64_t dense = divided_up(capped_product(logical.back(), weight.bits), words);
  const std::int64_t whole = divided_up(logical.back(), std::max<std::int64_t>(words / weight.bits, 1));
  if (logical.size() != codes.shape.size() ||
      !std::equal(logical.begin(), logical.end() - 1, codes.shape.begin()) ||
      (codes.shape.back() != dense && codes.shape.back() != whole))
    return fault(weight, fmt::format("weight_packed {} does not hold {} codes of {} bits", text_of(codes),
                                     text_of(logical), weight.bits));
  if (weight.layout == Layout::kPackedBytes) {
    if (has_groups_of(logical, scale->shape, 16)) weight.layout = Layout::kNvfp4;
    if (has_groups_of(logical, scale->shape, 32) && is_exponent(scale->dtype)) weight.layout = Layout::kMxfp4;
  }
  const bool is_tensor_scale = product(scale->shape) == 1;
  if (hint.group_size && *hint.group_size > 0 && !is_tensor_scale &&
      !has_groups_of(logical, scale->shape, *hint.group_size))
    return fault(weight, fmt::format("weight_scale {} is not one for each {} of {}", text_of(*scale),
                                     *hint.group_size, text_of(logical)));
  if (!is_tensor_scale && !scale->shape.empty()) take_group_size(logical.back(), scale->shape.back(), weight);
  return weight;
}

DecodedWeight decode_blocks(const StoredGroup& group) {
  const StoredPart& codes = *group[Part::kBlocks];
  const auto& scale = group[Part::kScale];
  DecodedWeight weight{.layout = Layout::kMxfp4Blocks, .bits = 4, .group_size = 32};
  weight.elements = capped_product(codes.elements(), 2);
  if (!scale) return fault(weight, "there are no scales to its blocks");
  if (codes.shape.size() < 2 || codes.shape.back() != 16)
    return fault(weight, fmt::format("blocks {} are not of 16 bytes", text_of(codes)));
  if (!std::equal(codes.shape.begin(), codes.shape.end() - 1, scale->shape.begin(), scale->shape.end()))
    return fault(weight,
                 fmt::format("scales {} are not one for each block of {}", text_of(*scale), text_of(codes)));
  return weight;
}

// bitsandbytes: two codes to a byte, whatever dtype the bytes are declared as.
DecodedWeight decode_four_bit(const StoredGroup& group) {
  const StoredPart& codes = *group[Part::kWeight];
  DecodedWeight weight{.layout = Layout::kBitsandbytes4, .bits = 4};
  const std::int64_t held = capped_product(codes.elements(), bits_of(codes.dtype)) / 4;
  weight.elements = group.stored_shape.empty() ? held : product(group.stored_shape);
  if (*weight.elements > held || held - *weight.elements > 1 + bits_of(codes.dtype) / 4)
    return fault(weight, fmt::format("its quant state says {}, its bytes hold {} codes",
                                     text_of(group.stored_shape), held));
  const auto& absmax = group[Part::kAbsmax];
  if (!absmax) return fault(weight, "there is no absmax to its codes");
  if (!group[Part::kQuantState]) return fault(weight, "there is no quant_state to its codes");
  if (absmax->elements() > 0) {
    weight.group_size = divided_up(*weight.elements, absmax->elements());
    // Blocks are powers of two; a last one that is not full makes the quotient a little less.
    std::int64_t block = 1;
    while (block < weight.group_size && block < (std::int64_t{1} << 40)) block *= 2;
    if (divided_up(*weight.elements, block) != absmax->elements())
      return fault(weight, fmt::format("{} scales do not go with {} weights in blocks", absmax->elements(),
                                       *weight.elements));
    weight.group_size = block;
  }
  return weight;
}

// One code to an element: fp8, int8; scales of any granularity.
DecodedWeight decode_one_to_one(const StoredPart& codes, const StoredGroup& group, const SchemeHint& hint) {
  DecodedWeight weight{.layout = is_float8(codes.dtype) ? Layout::kFloat8 : Layout::kInt8, .bits = 8};
  weight.elements = codes.elements();
  if (const auto& rows = group[Part::kRowScale]) {
    weight.layout = Layout::kBitsandbytes8;
    if (codes.shape.empty() || rows->elements() != codes.shape[0])
      return fault(weight,
                   fmt::format("SCB {} is not one for each row of {}", text_of(*rows), text_of(codes)));
    return weight;
  }
  const auto& scale = group[Part::kScale];
  if (!scale) return hint.bits ? fault(weight, "there are no scales to its codes") : weight;
  if (!scale_fits(codes.shape, scale->shape, hint))
    return fault(weight,
                 hint.block_rows && hint.block_columns
                     ? fmt::format("scales {} are not those of {} in blocks of {} x {}", text_of(*scale),
                                   text_of(codes), *hint.block_rows, *hint.block_columns)
                     : fmt::format("scales {} do not fit {}", text_of(*scale), text_of(codes)));
  if (scale->shape.size() == codes.shape.size() && !codes.shape.empty())
    take_group_size(codes.shape.back(), scale->shape.back(), weight);
  return weight;
}

// Bytes or words of several codes under the name `weight`, or torchao's and quanto's data.
DecodedWeight decode_bytes(const StoredPart& codes, const StoredGroup& group, const SchemeHint& hint) {
  DecodedWeight weight{.layout = Layout::kPackedBytes};
  const auto& scale = group[Part::kScale];
  std::vector<std::int64_t> logical(codes.shape.begin(), codes.shape.end());
  if (codes.dtype == DType::kF4) {  // its shape counts codes, not bytes
    weight.bits = 4;
    weight.elements = codes.elements();
  } else if (scale && !logical.empty() && bits_of(codes.dtype) == 8) {
    logical.back() = capped_product(logical.back(), 2);
    const bool is_nvfp4 = is_float8(scale->dtype) && has_groups_of(logical, scale->shape, 16);
    const bool is_mxfp4 = is_exponent(scale->dtype) && has_groups_of(logical, scale->shape, 32);
    if (is_nvfp4 || is_mxfp4) {
      weight.layout = is_nvfp4 ? Layout::kNvfp4 : Layout::kMxfp4;
      weight.bits = 4;
      weight.group_size = is_nvfp4 ? 16 : 32;
      weight.elements = product(logical);
      return weight;
    }
  }
  if (!weight.elements) {
    if (!hint.bits || *hint.bits <= 0)
      return fault(weight, fmt::format("nothing says how many bits a code of {} has", text_of(codes)));
    weight.bits = *hint.bits;
    weight.elements = group.stored_shape.empty()
                          ? capped_product(codes.elements(), bits_of(codes.dtype)) / weight.bits
                          : product(group.stored_shape);
    const std::int64_t held = capped_product(codes.elements(), bits_of(codes.dtype)) / weight.bits;
    if (*weight.elements > held)
      return fault(weight, fmt::format("its shape {} is more than the {} codes that are stored",
                                       text_of(group.stored_shape), held));
  }
  if (scale && scale->elements() > 1) {
    const auto groups = *weight.elements / scale->elements();
    if (groups == 0 || *weight.elements % scale->elements() != 0)
      return fault(weight, fmt::format("scales {} do not fit {}", text_of(*scale), text_of(codes)));
    weight.group_size = hint.group_size && *hint.group_size > 0 ? *hint.group_size : 0;
  }
  return weight;
}

// MLX: words [.., out, in*bits/32] under the name `weight`, scales and biases [.., out, in/group].
DecodedWeight decode_mlx(const StoredPart& codes, const StoredGroup& group, const SchemeHint& hint) {
  DecodedWeight weight{.layout = Layout::kMlx};
  const StoredPart& scales = *group[Part::kScale];
  if (codes.shape.empty() || scales.shape.size() != codes.shape.size() ||
      !std::equal(codes.shape.begin(), codes.shape.end() - 1, scales.shape.begin()))
    return fault(weight, fmt::format("scales {} do not fit {}", text_of(scales), text_of(codes)));
  const std::int64_t row_bits = capped_product(codes.shape.back(), bits_of(codes.dtype));
  std::int64_t inputs = 0;
  if (hint.group_size && *hint.group_size > 0)
    inputs = capped_product(scales.shape.back(), *hint.group_size);
  else if (hint.bits && *hint.bits > 0)
    inputs = row_bits / *hint.bits;
  else
    return fault(weight, fmt::format("nothing says how many bits a code of {} has", text_of(codes)));
  if (inputs > 0 && row_bits % inputs == 0)
    weight.bits = static_cast<int>(std::min<std::int64_t>(row_bits / inputs, 64));
  std::vector<std::int64_t> logical(codes.shape.begin(), codes.shape.end());
  logical.back() = inputs;
  weight.elements = product(logical);
  if (weight.bits < 1 || weight.bits > 8)
    return fault(weight, fmt::format("scales {} are not one for each {} of {}", text_of(scales),
                                     hint.group_size.value_or(0), text_of(codes)));
  take_group_size(inputs, scales.shape.back(), weight);
  if (hint.bits && *hint.bits != weight.bits) return fault(weight, bits_fault(weight.bits, *hint.bits));
  if (const auto& biases = group[Part::kZeroPoint];
      biases &&
      !std::equal(biases->shape.begin(), biases->shape.end(), scales.shape.begin(), scales.shape.end()))
    return fault(weight,
                 fmt::format("biases {} are not those of scales {}", text_of(*biases), text_of(scales)));
  return weight;
}

DecodedWeight decode_sparse(const StoredGroup& group) {
  const StoredPart& values = *group[Part::kCompressed];
  DecodedWeight weight{.layout = Layout::kSparse24, .bits = static_cast<int>(bits_of(values.dtype))};
  const auto& mask = group[Part::kBitmask];
  if (!group.stored_shape.empty())
    weight.elements = product(group.stored_shape);
  else if (mask)
    weight.elements = capped_product(mask->elements(), 8);
  if (!mask) return fault(weight, "there is no bitmask to its compressed values");
  if (*weight.elements > capped_product(mask->elements(), 8))
    return fault(weight, fmt::format("its shape {} is more than the {} bits of its mask",
                                     text_of(group.stored_shape), capped_product(mask->elements(), 8)));
  return weight;
}

}  // namespace

std::int64_t StoredPart::elements() const {
  return product(shape);
}

bool holds_codes(Part part, const StoredPart& carrier, const StoredGroup& group) {
  if (part == Part::kMarlin) return carrier.dtype == DType::kI32 && group[Part::kScale].has_value();
  if (part != Part::kWeight) return true;
  const bool is_table =
      carrier.dtype == DType::kI64 || carrier.dtype == DType::kU64 || carrier.dtype == DType::kBool;
  if (!is_plain_float(carrier.dtype)) return !is_table;
  // Four-bit codes may be declared as a float's bytes: a column of them beside scales.
  return (group[Part::kAbsmax] || group[Part::kQuantState]) && carrier.shape.size() == 2 &&
         carrier.shape[1] == 1;
}

DecodedWeight decode_stored(Part carrier, const StoredGroup& group, const SchemeHint& hint) {
  const StoredPart& codes = *group[carrier];
  switch (carrier) {
    case Part::kQweight:
      return decode_qweight(group, hint);
    case Part::kPacked:
      return decode_packed(group, hint);
    case Part::kBlocks:
      return decode_blocks(group);
    case Part::kCompressed:
      return decode_sparse(group);
    case Part::kWeight:
      if (group[Part::kAbsmax] || group[Part::kQuantState]) return decode_four_bit(group);
      break;
    default:
      break;
  }
  if (is_float8(codes.dtype)) return decode_one_to_one(codes, group, hint);
  if (carrier == Part::kWeight && codes.dtype == DType::kU32 && group[Part::kScale])
    return decode_mlx(codes, group, hint);
  // Four-bit floats in signed bytes show by a scale for each 32 of them; other signed bytes are whole codes.
  const auto& scale = group[Part::kScale];
  const bool is_four_bit = scale && scale->dtype == DType::kF8E8M0;
  const bool is_whole =
      codes.dtype == DType::kI8 && !is_four_bit && (hint.has_whole_bytes || hint.bits.value_or(8) == 8);
  if (is_whole) return decode_one_to_one(codes, group, hint);
  return decode_bytes(codes, group, hint);
}

}  // namespace plimsoll::model
