// SPDX-License-Identifier: Apache-2.0
#include "memory/quantized_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/tensor_kinds.h"

namespace plimsoll::memory {
namespace {

using model::capped_product;
using model::capped_sum;
using model::Layout;
using model::QuantizationScheme;

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return b > 0 ? a / b + (a % b != 0 ? 1 : 0) : 0;
}

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
        companion("weight_scale_2", DType::kF32, weight_.count);
        if (scheme_.has_input_scale) companion("input_scale", DType::kF32, weight_.count);
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
  std::int64_t per_matrix(std::int64_t elements) const { return capped_product(weight_.count, elements); }
  std::int64_t groups() const {
    return scheme_.group_size && *scheme_.group_size > 0 ? divide_up(weight_.in, *scheme_.group_size) : 1;
  }

  void one_to_one(DType dtype) {
    codes("weight", dtype, weight_.elements());
    if (scheme_.block_rows && scheme_.block_columns)
      companion("weight_scale_inv", DType::kF32,
                per_matrix(capped_product(divide_up(weight_.out, *scheme_.block_rows),
                                          divide_up(weight_.in, *scheme_.block_columns))));
    else if (scheme_.has_one_scale)
      companion("weight_scale", DType::kF32, weight_.count);
    else
      companion("weight_scale", DType::kBF16, per_matrix(capped_product(weight_.out, groups())));
    if (scheme_.has_zero_points)
      companion("weight_zero_point", DType::kI8, per_matrix(capped_product(weight_.out, groups())));
    if (scheme_.has_input_scale) companion("input_scale", DType::kF32, weight_.count);
  }

  std::int64_t words(std::int64_t codes_in_line) const {
    return divide_up(capped_product(codes_in_line, *scheme_.bits), 32);
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
    codes("weight", DType::kU8, per_matrix(capped_product(weight_.out, divide_up(weight_.in, 2))));
    companion("weight_scale", scale, per_matrix(capped_product(weight_.out, divide_up(weight_.in, group))));
  }

  // bitsandbytes: a scale for each block of the matrix as one row, the values that codes stand for, and a
  // JSON text that says all of it again. Source: docs/formats/quantized_layouts.md.
  void four_bit_codes() {
    constexpr std::int64_t kNestedBlock = 256, kCodes = 16, kNestedCodes = 256;
    constexpr std::int64_t kOffsetDigits = 18, kOffsetWithin = 3;  // "0.2303314208984375"
    const std::int64_t elements = capped_product(weight_.out, weight_.in);
    const std::int64_t blocks = divide_up(elements, *scheme_.group_size);
    const auto width = stored_bytes(scheme_.storage, 1);
    codes("weight", scheme_.storage,
          per_matrix(divide_up(divide_up(elements, 2), width ? std::max<std::int64_t>(1, width->value) : 1)));
    companion("weight.absmax", scheme_.doubly_quantized ? DType::kU8 : DType::kF32, per_matrix(blocks));
    companion("weight.quant_map", DType::kF32, per_matrix(kCodes));
    std::string state = fmt::format(
        R"({{"quant_type": "{}", "blocksize": {}, "dtype": "{}", "shape": [{}, {}])",
        scheme_.is_fp4 ? "fp4" : "nf4", *scheme_.group_size, torch_name(plain_), weight_.out, weight_.in);
    if (scheme_.doubly_quantized) {
      companion("weight.nested_absmax", DType::kF32, per_matrix(divide_up(blocks, kNestedBlock)));
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

// "model.layers.0.mlp.experts.0.up_proj": the first of a weight's copies, without its ending.
std::string module_of(const model::Weight& weight) {
  std::string module = weight.hf_name;
  if (module.ends_with(".weight")) module.resize(module.size() - 7);
  for (std::size_t at = module.find("{}"); at != std::string::npos; at = module.find("{}"))
    module.replace(at, 2, "0");
  return module;
}

bool is_matrix(const model::Weight& weight) {
  if (weight.is_linear || weight.group == model::WeightGroup::kHead) return true;
  // Experts that are one stack of matrices.
  return weight.group == model::WeightGroup::kExperts && weight.shape.size() == 3;
}

class Sum {
 public:
  explicit Sum(const model::ModelSpec& spec) : plain_(spec.declared_dtype.value_or(DType::kBF16)) {}

  void add_plain(const model::Weight& weight) {
    const std::int64_t elements = weight.elements();
    // Corrections of routers are kept in f32; the constants of a hash say their own type.
    add(weight.dtype.value_or(weight.is_parameter ? plain_ : DType::kF32), elements);
    if (!weight.is_parameter) result_.buffers = capped_sum(result_.buffers, elements);
  }

  bool add_quantized(const model::Weight& weight, const QuantizationScheme& scheme) {
    const auto tensors = stored_tensors(weight.shape, scheme, plain_);
    if (!tensors) return false;
    const bool is_blocks = scheme.layout == Layout::kMxfp4Blocks;
    for (const StoredTensor& tensor : *tensors) {
      const std::int64_t stored = capped_product(tensor.elements, weight.copies);
      add(tensor.dtype, stored);
      result_.within = Bytes(capped_sum(result_.within.value, capped_product(tensor.within, weight.copies)));
      if (tensor.is_companion) {
        std::int64_t& scales = is_blocks ? result_.block_scales : result_.scales;
        scales = capped_sum(scales, stored);
        continue;
      }
      if (is_blocks) result_.elements = capped_sum(result_.elements, stored);
      carried_ = capped_sum(carried_, is_blocks ? capped_product(stored, 2) : stored);
      held_ = capped_sum(held_, weight.elements());
      result_.packed = carried_ - held_;
    }
    return true;
  }

  void add_mtp(std::int64_t elements) { result_.mtp = capped_sum(result_.mtp, elements); }
  const StoredCheckpoint& result() const { return result_; }

 private:
  void add(DType dtype, std::int64_t elements) {
    result_.elements = capped_sum(result_.elements, elements);
    const auto bytes = stored_bytes(dtype, elements);
    result_.bytes = Bytes(capped_sum(result_.bytes.value, bytes ? bytes->value : 0));
  }

  DType plain_;
  StoredCheckpoint result_;
  std::int64_t carried_ = 0, held_ = 0;  // codes as stored, and the weights that they hold
};

// MLX takes every table and matrix of the language model whose rows are whole groups.
const QuantizationScheme* scheme_in_mlx(const model::Weight& weight, const model::Quantization& quantization,
                                        const std::string& module) {
  using model::WeightGroup;
  const bool is_table = (weight.group == WeightGroup::kEmbedding || weight.group == WeightGroup::kTable) &&
                        weight.shape.size() == 2;
  if (!weight.is_parameter || weight.group == WeightGroup::kEncoder) return nullptr;
  if (!is_table && !is_matrix(weight)) return nullptr;
  const QuantizationScheme* scheme = quantization.scheme_of(module);
  if (!scheme) return nullptr;
  const std::int64_t group = scheme->group_size.value_or(0);
  return group > 0 && weight.shape.back() % group != 0 ? nullptr : scheme;
}

const QuantizationScheme* scheme_under_name(const model::Weight& weight,
                                            const model::Quantization& quantization,
                                            const std::string& module) {
  using model::WeightGroup;
  if (quantization.method == "mlx") return scheme_in_mlx(weight, quantization, module);
  if (!is_matrix(weight) || !weight.is_parameter) return nullptr;
  const bool takes_all = quantization.method == "bitsandbytes";
  // It replaces linear layers: experts that are one parameter, a stack of matrices, stay as they are.
  const bool is_stack =
      weight.shape.size() > 2 || (weight.copies > 1 && weight.hf_name.find("{}") == std::string::npos);
  if (takes_all && is_stack) return nullptr;
  switch (weight.group) {
    case WeightGroup::kEmbedding:
    case WeightGroup::kTable:
      return nullptr;
    case WeightGroup::kRouter:
    case WeightGroup::kEncoder:
      // Left out of published checkpoints whether or not the config names them.
      if (!takes_all) return nullptr;
      break;
    case WeightGroup::kHead:
      // transformers keeps the output embedding from bitsandbytes, whatever its name.
      if (takes_all || quantization.method == "fp8" || quantization.method == "mxfp4") return nullptr;
      break;
    case WeightGroup::kMtp:
      // What joins a prediction layer to the model stays as it is.
      if (module.ends_with("eh_proj") || module.ends_with("shared_head.head") || module.ends_with("mlp.gate"))
        return nullptr;
      if (module.ends_with("indexer.weights_proj")) return nullptr;  // as in the decoder's layers
      break;
    case WeightGroup::kIndexer:
      if (module.ends_with("weights_proj")) return nullptr;  // one output for each head: not worth a scale
      break;
    default:
      break;
  }
  const QuantizationScheme* scheme = quantization.scheme_of(module);
  if (scheme && scheme->layout == Layout::kMxfp4Blocks && weight.group != WeightGroup::kExperts)
    return nullptr;
  return scheme;
}

// Where the modules of a wrapper's language model stand in its files.
enum class Naming { kAsInSpec, kBehindLanguageModel, kWithinModel };

std::string name_in_files(const model::Weight& weight, Naming naming) {
  constexpr std::string_view kModel = "model.";
  std::string module = module_of(weight);
  if (naming == Naming::kBehindLanguageModel) module.insert(0, "language_model.");
  if (naming == Naming::kWithinModel && module.starts_with(kModel))
    module.insert(kModel.size(), "language_model.");
  return module;
}

// Whether the declaration tells modules of layers apart by these names: leaves some, or gives them schemes
// that differ.
bool tells_apart(const model::ModelSpec& spec, const model::Quantization& quantization, Naming naming) {
  std::optional<const QuantizationScheme*> first;
  return std::any_of(spec.weights.begin(), spec.weights.end(), [&](const model::Weight& weight) {
    if (weight.layer < 0) return false;
    const std::string module = name_in_files(weight, naming);
    if (quantization.leaves(module)) return true;
    if (!is_matrix(weight)) return false;
    const QuantizationScheme* scheme = quantization.scheme_of(module);
    if (!first) first = scheme;
    return scheme != *first;
  });
}

bool lists_modules(const model::Quantization& quantization) {
  return std::any_of(quantization.unconverted.begin(), quantization.unconverted.end(),
                     [](const std::string& name) { return name.find('.') != std::string::npos; });
}

// Lists of modules count only where they name modules in one of these ways; nothing where they do not.
std::optional<Naming> naming_of(const model::ModelSpec& spec, const model::Quantization& quantization) {
  if (!lists_modules(quantization)) return Naming::kAsInSpec;
  if (spec.has_file_names && tells_apart(spec, quantization, Naming::kAsInSpec)) return Naming::kAsInSpec;
  for (const Naming naming : {Naming::kBehindLanguageModel, Naming::kWithinModel})
    if (tells_apart(spec, quantization, naming)) return naming;
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<StoredTensor>> stored_tensors(std::span<const std::int64_t> shape,
                                                        const QuantizationScheme& scheme, DType plain) {
  if (shape.size() < 2) return std::nullopt;
  Matrix weight{1, shape[shape.size() - 2], shape[shape.size() - 1]};
  for (const std::int64_t stack : shape.first(shape.size() - 2))
    weight.count = capped_product(weight.count, stack);
  return Tensors(weight, scheme, plain).list();
}

const QuantizationScheme* scheme_of(const model::Weight& weight, const model::Quantization& quantization) {
  return scheme_under_name(weight, quantization, module_of(weight));
}

bool can_ask_about(const model::ModelSpec& spec, const model::Quantization& quantization) {
  // Is it left, and by which scheme is it stored; with a list, under three names before.
  const std::size_t num_questions = lists_modules(quantization) ? 7 : 2;
  return quantization.can_answer(num_questions * spec.weights.size());
}

bool is_for_cache_alone(const model::Quantization& quantization) {
  const bool is_silent = !quantization.main_scheme() && quantization.faults.empty();
  if (!is_silent || quantization.kv_cache_algorithm.empty()) return false;
  // A named algorithm without a scheme is one that is not read here.
  return quantization.method == "compressed-tensors" ||
         (quantization.method.starts_with("modelopt") && quantization.format.is_null());
}

std::optional<StoredCheckpoint> stored_checkpoint(const model::ModelSpec& spec,
                                                  const std::optional<model::Quantization>& quantization) {
  if (!spec.has_all_weights) return std::nullopt;
  if (quantization && is_for_cache_alone(*quantization)) return stored_checkpoint(spec, std::nullopt);
  if (quantization && (!quantization->main_scheme() || !can_ask_about(spec, *quantization)))
    return std::nullopt;
  const auto naming = quantization ? naming_of(spec, *quantization) : Naming::kAsInSpec;
  if (!naming) return std::nullopt;
  Sum sum(spec);
  for (const model::Weight& weight : spec.weights) {
    if (weight.hf_name.empty() && !weight.is_parameter) continue;  // GGUF's alone
    const QuantizationScheme* scheme =
        quantization ? scheme_under_name(weight, *quantization, name_in_files(weight, *naming)) : nullptr;
    if (!scheme)
      sum.add_plain(weight);
    else if (!sum.add_quantized(weight, *scheme))
      return std::nullopt;
    if (weight.group == model::WeightGroup::kMtp && weight.is_parameter) sum.add_mtp(weight.elements());
  }
  return sum.result();
}

std::optional<Bytes> most_checkpoint_bytes(const model::ModelSpec& spec,
                                           const std::optional<model::Quantization>& quantization) {
  if (spec.declared_dtype) return std::nullopt;
  model::ModelSpec wide = spec;
  wide.declared_dtype = DType::kF32;
  const auto checkpoint = stored_checkpoint(wide, quantization);
  return checkpoint ? std::optional(checkpoint->bytes) : std::nullopt;
}

}  // namespace plimsoll::memory
