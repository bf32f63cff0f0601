// SPDX-License-Identifier: Apache-2.0
#include "engine/quantized_weights.h"

#include <fmt/format.h>

#include <cstring>

#include "base/division.h"
#include "engine/bitsandbytes_weights.h"
#include "engine/module_tensors.h"
#include "memory/memory.h"
#include "model/stored_weights.h"

namespace plimsoll::engine {
namespace {

using model::Layout;
using model::QuantizationScheme;

/// What all layouts start from.
struct Wanted {
  std::int64_t rows, columns;
  const model::Quantization& declared;
  const QuantizationScheme& scheme;
};

StoredMatrix matrix_of(const Wanted& wanted, decltype(StoredMatrix::stored) stored) {
  return {wanted.rows, wanted.columns, std::move(stored)};
}

template <class T>
T value_at(const ModuleTensor& tensor, std::int64_t i) {
  T value;
  std::memcpy(&value, tensor.data() + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

// The groups along the input: of the declared size, or in the order that g_idx gives.
Result<Groups> groups_of(const ModuleTensors& tensors, const Wanted& wanted, std::string_view order) {
  const std::int64_t declared = wanted.scheme.group_size.value_or(-1);
  Groups groups;
  groups.size = declared > 0 ? declared : wanted.columns;
  groups.count = divided_up(wanted.columns, groups.size);
  if (!tensors.has(order)) return groups;
  PLIMSOLL_TRY(const ModuleTensor indices, tensors.get(order, {DType::kI32}, {wanted.columns}));
  groups.order = indices.data();
  bool is_trivial = true;
  for (std::int64_t i = 0; i < wanted.columns; ++i) {
    const auto group = value_at<std::int32_t>(indices, i);
    if (group < 0 || group >= groups.count)
      return tensors.malformed(order, fmt::format("{} at {}", group, i),
                               fmt::format("a group from 0 to {}", groups.count - 1));
    is_trivial &= group == i / groups.size;
  }
  if (is_trivial) groups.order = nullptr;
  return groups;
}

// Words hold whole codes along an axis of `length`.
Status check_words(const ModuleTensors& tensors, std::int64_t length, std::int64_t codes_per_word) {
  if (length % codes_per_word == 0) return {};
  return tensors.unsupported(
      fmt::format("{} codes along an axis packed {} to a word", length, codes_per_word));
}

Result<StoredMatrix> load_gptq(const ModuleTensors& tensors, const Wanted& wanted) {
  GptqColumns gptq;
  gptq.bits = *wanted.scheme.bits;
  gptq.rows = wanted.rows;
  gptq.zero_offset = wanted.declared.format == Json("gptq_v2") ? 0 : 1;
  const std::int64_t per_word = 32 / gptq.bits;
  PLIMSOLL_TRY_VOID(check_words(tensors, wanted.rows, per_word));
  PLIMSOLL_TRY_VOID(check_words(tensors, wanted.columns, per_word));
  PLIMSOLL_TRY(gptq.groups, groups_of(tensors, wanted, "g_idx"));
  PLIMSOLL_TRY(const ModuleTensor codes,
               tensors.get("qweight", {DType::kI32}, {wanted.columns / per_word, wanted.rows}));
  PLIMSOLL_TRY(const ModuleTensor scales,
               tensors.get("scales", kFloatTypes, {gptq.groups.count, wanted.rows}));
  PLIMSOLL_TRY(const ModuleTensor zeros,
               tensors.get("qzeros", {DType::kI32}, {gptq.groups.count, wanted.rows / per_word}));
  gptq.codes = codes.data();
  gptq.scales = scales.numbers();
  gptq.zero_points = zeros.data();
  return matrix_of(wanted, gptq);
}

Result<StoredMatrix> load_awq(const ModuleTensors& tensors, const Wanted& wanted) {
  constexpr std::int64_t kPerWord = 8;
  AwqColumns awq;
  awq.rows = wanted.rows;
  PLIMSOLL_TRY_VOID(check_words(tensors, wanted.rows, kPerWord));
  PLIMSOLL_TRY(awq.groups, groups_of(tensors, wanted, "g_idx"));
  PLIMSOLL_TRY(const ModuleTensor codes,
               tensors.get("qweight", {DType::kI32}, {wanted.columns, wanted.rows / kPerWord}));
  PLIMSOLL_TRY(const ModuleTensor scales,
               tensors.get("scales", kFloatTypes, {awq.groups.count, wanted.rows}));
  if (wanted.scheme.has_zero_points) {
    PLIMSOLL_TRY(const ModuleTensor zeros,
                 tensors.get("qzeros", {DType::kI32}, {awq.groups.count, wanted.rows / kPerWord}));
    awq.zero_points = zeros.data();
  }
  awq.codes = codes.data();
  awq.scales = scales.numbers();
  return matrix_of(wanted, awq);
}

// A shape stored as values has to be that of the weight.
Status check_shape_values(const ModuleTensors& tensors, const Wanted& wanted) {
  PLIMSOLL_TRY(const ModuleTensor shape, tensors.get("weight_shape", {DType::kI64, DType::kI32}, {2}));
  const bool is_wide = shape.tensor->dtype == DType::kI64;
  const auto value = [&](std::int64_t i) {
    return is_wide ? value_at<std::int64_t>(shape, i) : value_at<std::int32_t>(shape, i);
  };
  if (value(0) != wanted.rows || value(1) != wanted.columns)
    return tensors.malformed("weight_shape", fmt::format("{} x {}", value(0), value(1)),
                             fmt::format("{} x {}", wanted.rows, wanted.columns));
  return {};
}

Result<StoredMatrix> load_packed(const ModuleTensors& tensors, const Wanted& wanted) {
  PackedRows packed;
  packed.bits = *wanted.scheme.bits;
  const std::int64_t per_word = 32 / packed.bits;
  packed.row_words = divided_up(wanted.columns, per_word);
  PLIMSOLL_TRY(packed.groups, groups_of(tensors, wanted, "weight_g_idx"));
  PLIMSOLL_TRY(const ModuleTensor codes,
               tensors.get("weight_packed", {DType::kI32}, {wanted.rows, packed.row_words}));
  PLIMSOLL_TRY(const ModuleTensor scales,
               tensors.get("weight_scale", kFloatTypes, {wanted.rows, packed.groups.count}));
  if (tensors.has("weight_shape")) PLIMSOLL_TRY_VOID(check_shape_values(tensors, wanted));
  if (wanted.scheme.has_zero_points) {
    PLIMSOLL_TRY(const ModuleTensor zeros,
                 tensors.get("weight_zero_point", {DType::kI32},
                             {divided_up(wanted.rows, per_word), packed.groups.count}));
    packed.zero_points = zeros.data();
  }
  packed.codes = codes.data();
  packed.scales = scales.numbers();
  return matrix_of(wanted, packed);
}

// One side of the grid of scales: how many weights a scale is for.
std::optional<std::int64_t> block_side(std::int64_t scales, std::int64_t weights,
                                       std::optional<std::int64_t> declared) {
  if (declared && *declared > 0 && divided_up(weights, *declared) == scales) return *declared;
  if (scales == 1) return weights;
  if (scales == weights) return 1;
  return std::nullopt;
}

// Scales of the whole tensor, of rows, of groups in a row or of blocks.
Status take_scales(const ModuleTensors& tensors, const Wanted& wanted, std::string_view ending,
                   ByteRows& bytes) {
  PLIMSOLL_TRY(const ModuleTensor scales,
               tensors.get(ending, {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E8M0}));
  const auto& shape = scales.tensor->shape;
  const std::int64_t grid_rows = shape.size() >= 1 ? shape[0] : 1,
                     grid_columns = shape.size() == 2 ? shape[1] : 1;
  const auto block_columns =
      wanted.scheme.block_columns ? wanted.scheme.block_columns : wanted.scheme.group_size;
  const auto of_rows = block_side(grid_rows, wanted.rows, wanted.scheme.block_rows);
  const auto of_columns = block_side(grid_columns, wanted.columns, block_columns);
  if (shape.size() > 2 || !of_rows || !of_columns)
    return tensors.malformed(ending, fmt::format("of {} x {} scales", grid_rows, grid_columns),
                             fmt::format("one for each tensor, row, group or block of {} x {} weights",
                                         wanted.rows, wanted.columns));
  bytes.scales = scales.numbers();
  bytes.block_rows = *of_rows;
  bytes.block_columns = *of_columns;
  bytes.scale_columns = grid_columns;
  return {};
}

Result<StoredMatrix> load_bytes(const ModuleTensors& tensors, const Wanted& wanted) {
  ByteRows bytes;
  const bool is_float = wanted.scheme.layout == Layout::kFloat8;
  const ModuleTensors::Shape shape{wanted.rows, wanted.columns};
  PLIMSOLL_TRY(const ModuleTensor codes, is_float
                                             ? tensors.get("weight", {DType::kF8E4M3, DType::kF8E5M2}, shape)
                                             : tensors.get("weight", {DType::kI8}, shape));
  const std::string_view ending = tensors.first_of({"weight_scale_inv", "weight_scale", "scale"});
  PLIMSOLL_TRY_VOID(take_scales(tensors, wanted, ending.empty() ? "weight_scale" : ending, bytes));
  if (!is_float && wanted.scheme.has_zero_points) {
    const std::int64_t grid_rows = divided_up(wanted.rows, bytes.block_rows);
    PLIMSOLL_TRY(const ModuleTensor zeros, tensors.get("weight_zero_point", {DType::kI8}));
    if (zeros.tensor->elements() != grid_rows * bytes.scale_columns)
      return tensors.malformed("weight_zero_point", fmt::format("{} codes", zeros.tensor->elements()),
                               fmt::format("{}, one for each scale,", grid_rows * bytes.scale_columns));
    bytes.zero_points = zeros.data();
  }
  bytes.codes = codes.data();
  bytes.values = kernels::code_values(codes.tensor->dtype);
  return matrix_of(wanted, bytes);
}

Result<StoredMatrix> load_nibbles(const ModuleTensors& tensors, const Wanted& wanted) {
  NibbleRows nibbles;
  const bool is_nvfp4 = wanted.scheme.layout == Layout::kNvfp4;
  nibbles.group = is_nvfp4 ? 16 : 32;
  nibbles.values = kernels::code_values(DType::kF4);
  if (wanted.columns % nibbles.group != 0)
    return tensors.unsupported(fmt::format("{} inputs in groups of {}", wanted.columns, nibbles.group));
  const std::string_view carrier = tensors.has("weight_packed") ? "weight_packed" : "weight";
  PLIMSOLL_TRY(const ModuleTensor codes,
               tensors.get(carrier, {DType::kU8}, {wanted.rows, wanted.columns / 2}));
  const ModuleTensors::Shape grid{wanted.rows, wanted.columns / nibbles.group};
  PLIMSOLL_TRY(const ModuleTensor scales,
               is_nvfp4 ? tensors.get("weight_scale", {DType::kF8E4M3}, grid)
                        : tensors.get("weight_scale", {DType::kU8, DType::kF8E8M0}, grid));
  nibbles.codes = codes.data();
  nibbles.scales = {is_nvfp4 ? DType::kF8E4M3 : DType::kF8E8M0, scales.data()};
  if (is_nvfp4 && tensors.has("weight_scale_2")) {  // modelopt stores the factor, others its inverse
    PLIMSOLL_TRY(nibbles.factor, tensors.factor("weight_scale_2"));
  } else if (is_nvfp4) {
    PLIMSOLL_TRY(nibbles.divisor, tensors.factor("weight_global_scale"));
  }
  return matrix_of(wanted, nibbles);
}

Result<StoredMatrix> load_rows_of_int8(const ModuleTensors& tensors, const Wanted& wanted) {
  constexpr float kMost = 127;  // SCB holds the largest magnitude of each row
  ByteRows bytes;
  PLIMSOLL_TRY(const ModuleTensor codes, tensors.get("weight", {DType::kI8}, {wanted.rows, wanted.columns}));
  PLIMSOLL_TRY(const ModuleTensor scales, tensors.get("SCB", {DType::kF32}, {wanted.rows}));
  if (tensors.has("weight_format")) {
    PLIMSOLL_TRY(const ModuleTensor format, tensors.get("weight_format", {DType::kU8}, {}));
    if (format.bytes[0] != std::byte{0})
      return tensors.unsupported("int8 weights in an order other than by rows");
  }
  bytes.codes = codes.data();
  bytes.values = kernels::code_values(DType::kI8);
  bytes.scales = scales.numbers();
  bytes.block_columns = wanted.columns;
  bytes.divisor = kMost;
  return matrix_of(wanted, bytes);
}

}  // namespace

bool is_stored_plain(const artifact::Artifact& artifact, const model::Weight& weight) {
  const artifact::Tensor* tensor = model::find_tensor(artifact, weight);
  return tensor && kernels::can_read(tensor->dtype) && !artifact.find(weight.hf_name + ".absmax");
}

Result<StoredMatrix> load_quantized(const artifact::Artifact& artifact, const model::Weight& weight,
                                    const model::Quantization& declared, const QuantizationScheme& scheme) {
  PLIMSOLL_TRY_VOID(memory::check_embedded_scheme(declared, scheme));
  const ModuleTensors tensors(artifact, std::string(model::split_name(weight.hf_name).module));
  if (tensors.has("pre_quant_scale")) return tensors.unsupported("scales of its inputs");
  const Wanted wanted{weight.shape[0], weight.shape[1], declared, scheme};
  switch (scheme.layout) {
    case Layout::kGptq:
      return load_gptq(tensors, wanted);
    case Layout::kAwq:
      return load_awq(tensors, wanted);
    case Layout::kPackedInt:
      return load_packed(tensors, wanted);
    case Layout::kFloat8:
    case Layout::kInt8:
      return load_bytes(tensors, wanted);
    case Layout::kNvfp4:
    case Layout::kMxfp4:
      return load_nibbles(tensors, wanted);
    case Layout::kBitsandbytes8:
      return load_rows_of_int8(tensors, wanted);
    case Layout::kBitsandbytes4: {
      PLIMSOLL_TRY(const BookRows book, load_book(tensors, wanted.rows, wanted.columns));
      return matrix_of(wanted, book);
    }
    default:
      return tensors.unsupported("a layout of its own");
  }
}

Result<StoredMatrix> load_expert_blocks(const artifact::Artifact& artifact, std::string_view module,
                                        std::int64_t experts, std::int64_t expert, std::int64_t rows,
                                        std::int64_t columns) {
  constexpr std::int64_t kGroup = 32;
  const ModuleTensors tensors(artifact, std::string(module), '_');
  PLIMSOLL_CHECK(expert >= 0 && expert < experts, "the expert is one of the stack");
  if (columns % kGroup != 0) return tensors.unsupported(fmt::format("{} inputs in blocks of 32", columns));
  const std::int64_t groups = columns / kGroup;
  PLIMSOLL_TRY(const ModuleTensor codes,
               tensors.get("blocks", {DType::kU8}, {experts, rows, groups, kGroup / 2}));
  PLIMSOLL_TRY(const ModuleTensor scales, tensors.get("scales", {DType::kU8}, {experts, rows, groups}));
  NibbleRows nibbles;
  nibbles.group = kGroup;
  nibbles.values = kernels::code_values(DType::kF4);
  nibbles.codes = codes.data() + expert * rows * (columns / 2);
  nibbles.scales = {DType::kF8E8M0, scales.data() + expert * rows * groups};
  return StoredMatrix{rows, columns, nibbles};
}

}  // namespace plimsoll::engine
