// SPDX-License-Identifier: Apache-2.0
#include "memory/stored_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/division.h"
#include "base/units.h"
#include "model/tensor_kinds.h"

namespace plimsoll::memory {
namespace {

using model::capped_product;
using model::Layout;
using model::QuantizationScheme;

// A weight as matrices: [matrices, out, in].
struct Matrix {
  std::int64_t count = 1, out = 1, in = 1;
  std::int64_t elements() const { return capped_product(capped_product(count, out), in); }
};

class Tensors {
 public:
  Tensors(Matrix weight, const QuantizationScheme& scheme, DType plain)
      : weight_(weight), scheme_(scheme), plain_(plain) {}

  std::optional<std::vector<StoredTensor>> list() {
    switch (scheme_.layout) {
      case Layout::kFloat8:
        one_to_one(DType::kF8E4M3);
        break;
      case Layout::kInt8:
        one_to_one(DType::kI8);
        break;
      case Layout::kGptq:
      case Layout::kAwq:
        if (!scheme_.bits) return std::nullopt;
        words_of_gptq();
        break;
      case Layout::kPackedInt:
        if (!scheme_.bits) return std::nullopt;
        words_of_compressed_tensors();
        break;
      case Layout::kNvfp4:
        four_bit_floats(16, DType::kF8E4M3);
        single("weight_scale_2");
        if (scheme_.has_input_scale) single("input_scale");
        break;
      case Layout::kMxfp4:
      case Layout::kMxfp4Blocks:
        four_bit_floats(32, DType::kU8);
        break;
      case Layout::kBitsandbytes8:
        codes("weight", DType::kI8, weight_.elements());
        companion("SCB", DType::kF32, capped_product(weight_.count, weight_.out));
        companion("weight_format", DType::kU8, weight_.count);
        break;
      case Layout::kBitsandbytes4:
        if (!scheme_.group_size || *scheme_.group_size <= 0) return std::nullopt;
        four_bit_codes();
        break;
      case Layout::kMlx:
        if (!scheme_.bits || !scheme_.group_size || *scheme_.group_size <= 0) return std::nullopt;
        words_of_mlx();
        break;
      case Layout::kPlain:
      case Layout::kPackedBytes:
      case Layout::kSparse24:
      case Layout::kOther:
        return std::nullopt;
    }
    if (scheme_.has_24_sparsity) return std::nullopt;
    return std::move(tensors_);
  }

 private:
  void codes(std::string_view ending, DType dtype, std::int64_t elements) {
    tensors_.push_back({ending, dtype, elements, false});
  }
  void companion(std::string_view ending, DType dtype, std::int64_t elements) {
    tensors_.push_back({ending, dtype, elements, true});
  }
  void single(std::string_view ending) {
    companion(ending, DType::kF32, weight_.count);
    tensors_.back().is_single = true;
  }
  std::int64_t per_matrix(std::int64_t elements) const { return capped_product(weight_.count, elements); }
  std::int64_t groups() const {
    return scheme_.group_size && *scheme_.group_size > 0 ? divided_up(weight_.in, *scheme_.group_size) : 1;
  }

  void one_to_one(DType dtype) {
    codes("weight", dtype, weight_.elements());
    if (scheme_.block_rows && scheme_.block_columns)
      companion("weight_scale_inv", DType::kF32,
                per_matrix(capped_product(divided_up(weight_.out, *scheme_.block_rows),
                                          divided_up(weight_.in, *scheme_.block_columns))));
    else if (scheme_.has_one_scale)
      single("weight_scale");
    else
      companion("weight_scale", DType::kBF16, per_matrix(capped_product(weight_.out, groups())));
    if (scheme_.has_zero_points)
      companion("weight_zero_point", DType::kI8, per_matrix(capped_product(weight_.out, groups())));
    if (scheme_.has_input_scale) single("input_scale");
  }

  std::int64_t words(std::int64_t codes_in_line) const {
    return divided_up(capped_product(codes_in_line, *scheme_.bits), 32);
  }

  // GPTQ packs along the input, AWQ along the output: the words are as many.
  void words_of_gptq() {
    const bool is_gptq = scheme_.layout == Layout::kGptq;
    codes("qweight", DType::kI32,
          per_matrix(is_gptq ? capped_product(words(weight_.in), weight_.out)
                             : capped_product(weight_.in, words(weight_.out))));
    companion("scales", DType::kF16, per_matrix(capped_product(groups(), weight_.out)));
    if (scheme_.has_zero_points)
      companion("qzeros", DType::kI32, per_matrix(capped_product(groups(), words(weight_.out))));
    if (scheme_.has_order) companion("g_idx", DType::kI32, per_matrix(weight_.in));
  }

  void words_of_compressed_tensors() {
    codes("weight_packed", DType::kI32, per_matrix(capped_product(weight_.out, words(weight_.in))));
    companion("weight_scale", DType::kBF16, per_matrix(capped_product(weight_.out, groups())));
    companion("weight_shape", DType::kI64, per_matrix(2));
    if (scheme_.has_zero_points)
      companion("weight_zero_point", DType::kI32, per_matrix(capped_product(words(weight_.out), groups())));
    if (scheme_.has_order) companion("weight_g_idx", DType::kI32, per_matrix(weight_.in));
  }

  void words_of_mlx() {
    const std::int64_t scales = per_matrix(capped_product(weight_.out, groups()));
    codes("weight", DType::kU32, per_matrix(capped_product(weight_.out, words(weight_.in))));
    companion("scales", scheme_.has_zero_points ? plain_ : DType::kU8, scales);  // U8: an exponent
    if (scheme_.has_zero_points) companion("biases", plain_, scales);
  }

  void four_bit_floats(std::int64_t group, DType scale) {
    codes("weight", DType::kU8, per_matrix(capped_product(weight_.out, divided_up(weight_.in, 2))));
    companion("weight_scale", scale, per_matrix(capped_product(weight_.out, divided_up(weight_.in, group))));
  }

  // bitsandbytes: a scale for each block of the matrix as one row, the values that codes stand for, and a
  // JSON text that says all of it again. Source: docs/formats/quantized_layouts.md.
  void four_bit_codes() {
    constexpr std::int64_t kNestedBlock = 256, kCodes = 16, kNestedCodes = 256;
    constexpr std::int64_t kOffsetDigits = 18, kOffsetWithin = 3;  // "0.2303314208984375"
    const std::int64_t elements = capped_product(weight_.out, weight_.in);
    const std::int64_t blocks = divided_up(elements, *scheme_.group_size);
    const auto width = stored_bytes(scheme_.storage, 1);
    codes(
        "weight", scheme_.storage,
        per_matrix(divided_up(divided_up(elements, 2), width ? std::max<std::int64_t>(1, width->value) : 1)));
    companion("weight.absmax", scheme_.doubly_quantized ? DType::kU8 : DType::kF32, per_matrix(blocks));
    companion("weight.quant_map", DType::kF32, per_matrix(kCodes));
    std::string state = fmt::format(
        R"({{"quant_type": "{}", "blocksize": {}, "dtype": "{}", "shape": [{}, {}])",
        scheme_.is_fp4 ? "fp4" : "nf4", *scheme_.group_size, torch_name(plain_), weight_.out, weight_.in);
    if (scheme_.doubly_quantized) {
      companion("weight.nested_absmax", DType::kF32, per_matrix(divided_up(blocks, kNestedBlock)));
      companion("weight.nested_quant_map", DType::kF32, per_matrix(kNestedCodes));
      state += R"(, "nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": )";
      state += std::string(kOffsetDigits, '0');
    }
    companion(
        scheme_.is_fp4 ? "weight.quant_state.bitsandbytes__fp4" : "weight.quant_state.bitsandbytes__nf4",
        DType::kU8, per_matrix(static_cast<std::int64_t>(state.size()) + 1));
    if (scheme_.doubly_quantized) tensors_.back().within = per_matrix(kOffsetWithin);
  }

  static std::string_view torch_name(DType dtype) {
    return dtype == DType::kF16 ? "float16" : dtype == DType::kF32 ? "float32" : "bfloat16";
  }

  Matrix weight_;
  const QuantizationScheme& scheme_;
  DType plain_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace

std::optional<std::vector<StoredTensor>> stored_tensors(std::span<const std::int64_t> shape,
                                                        const QuantizationScheme& scheme, DType plain) {
  if (shape.size() < 2) return std::nullopt;
  Matrix weight{1, shape[shape.size() - 2], shape[shape.size() - 1]};
  for (const std::int64_t stack : shape.first(shape.size() - 2))
    weight.count = capped_product(weight.count, stack);
  return Tensors(weight, scheme, plain).list();
}

}  // namespace plimsoll::memory
