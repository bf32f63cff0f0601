// SPDX-License-Identifier: Apache-2.0
#include "engine/bitsandbytes_weights.h"

#include <fmt/format.h>

#include <cmath>

#include "base/division.h"
#include "base/json.h"

namespace plimsoll::engine {
namespace {

constexpr std::int64_t kNumCodes = 16, kNumNestedCodes = 256;
constexpr std::size_t kMaxStateBytes = 1 << 16;  // real ones have 200

/// The JSON text among the tensors.
struct QuantState {
  std::string_view ending;  // of the tensor's name
  Json values;

  /// A count that is positive.
  Result<std::int64_t> count(const ModuleTensors& tensors, std::string_view key) const {
    const auto value = values[key].as_integer();
    if (value && *value > 0) return *value;
    return tensors.malformed(ending, fmt::format("{} {}", key, dump(values[key])), "a count");
  }
};

Result<QuantState> read_state(const ModuleTensors& tensors) {
  const std::string_view ending =
      tensors.first_of({"weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"});
  if (ending.empty()) return tensors.unsupported("four-bit codes without a quant_state");
  PLIMSOLL_TRY(const ModuleTensor stored, tensors.get(ending, {DType::kU8, DType::kI8}));
  if (stored.bytes.size() > kMaxStateBytes)
    return tensors.malformed(ending, fmt::format("{} bytes", stored.bytes.size()), "a short text");
  const std::string_view text(reinterpret_cast<const char*>(stored.data()), stored.bytes.size());
  PLIMSOLL_TRY(Json values, parse_json(text, ending, {.max_depth = 8}));
  return QuantState{ending, std::move(values)};
}

Status check_matrix(const ModuleTensors& tensors, const QuantState& state, std::int64_t rows,
                    std::int64_t columns) {
  const auto& shape = state.values["shape"].items();
  if (shape.size() == 2 && shape[0].as_integer() == rows && shape[1].as_integer() == columns) return {};
  return tensors.malformed(state.ending, "shape " + dump(state.values["shape"]).substr(0, 60),
                           fmt::format("[{}, {}]", rows, columns));
}

// Scales that are codes themselves.
Status read_nested(const ModuleTensors& tensors, const QuantState& state, std::int64_t blocks,
                   BookRows& book) {
  PLIMSOLL_TRY(const ModuleTensor codes, tensors.get("weight.absmax", {DType::kU8}, {blocks}));
  PLIMSOLL_TRY(const ModuleTensor values,
               tensors.get("weight.nested_quant_map", kFloatTypes, {kNumNestedCodes}));
  PLIMSOLL_TRY(book.nested_block, state.count(tensors, "nested_blocksize"));
  PLIMSOLL_TRY(const ModuleTensor scales,
               tensors.get("weight.nested_absmax", kFloatTypes, {divided_up(blocks, book.nested_block)}));
  const auto offset = state.values["nested_offset"].as_double();
  if (!offset || !std::isfinite(*offset))
    return tensors.malformed(state.ending, "nested_offset " + dump(state.values["nested_offset"]),
                             "a number");
  book.offset = static_cast<float>(*offset);
  book.scales = codes.numbers();
  book.nested_values = values.numbers();
  book.nested_scales = scales.numbers();
  return {};
}

}  // namespace

Result<BookRows> load_book(const ModuleTensors& tensors, std::int64_t rows, std::int64_t columns) {
  BookRows book;
  PLIMSOLL_TRY(const QuantState state, read_state(tensors));
  PLIMSOLL_TRY_VOID(check_matrix(tensors, state, rows, columns));
  PLIMSOLL_TRY(book.block, state.count(tensors, "blocksize"));
  // The bytes may be declared as those of a wider type.
  PLIMSOLL_TRY(const ModuleTensor codes,
               tensors.get("weight", {DType::kU8, DType::kI8, DType::kF16, DType::kBF16, DType::kF32}));
  const std::int64_t needed = divided_up(rows * columns, 2), width = info(codes.tensor->dtype).block_bytes;
  if (codes.tensor->bytes != divided_up(needed, width) * width)
    return tensors.malformed("weight", fmt::format("{} bytes", codes.tensor->bytes),
                             fmt::format("{} for {} x {} codes", needed, rows, columns));
  PLIMSOLL_TRY(const ModuleTensor values, tensors.get("weight.quant_map", kFloatTypes, {kNumCodes}));
  for (std::int64_t i = 0; i < kNumCodes; ++i) book.values[i] = values.numbers().at(i);
  const std::int64_t blocks = divided_up(rows * columns, book.block);
  book.codes = codes.data();
  if (tensors.has("weight.nested_absmax")) {
    PLIMSOLL_TRY_VOID(read_nested(tensors, state, blocks, book));
  } else {
    PLIMSOLL_TRY(const ModuleTensor scales, tensors.get("weight.absmax", kFloatTypes, {blocks}));
    book.scales = scales.numbers();
  }
  return book;
}

}  // namespace plimsoll::engine
