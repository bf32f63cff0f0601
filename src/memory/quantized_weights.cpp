// SPDX-License-Identifier: Apache-2.0
#include "memory/quantized_weights.h"

#include <algorithm>
#include <string>

#include "model/tensor_kinds.h"

namespace plimsoll::memory {
namespace {

using model::capped_product;
using model::capped_sum;
using model::Layout;
using model::QuantizationScheme;

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
        if (tensor.is_single) result_.single_scales = capped_sum(result_.single_scales, stored);
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

// Nothing when some weight's scheme has no formula. `scheme_for` gives null for what stays as it is.
template <typename SchemeFor>
std::optional<StoredCheckpoint> sum_up(const model::ModelSpec& spec, const SchemeFor& scheme_for) {
  Sum sum(spec);
  for (const model::Weight& weight : spec.weights) {
    if (weight.hf_name.empty() && !weight.is_parameter) continue;  // GGUF's alone
    const QuantizationScheme* scheme = scheme_for(weight);
    if (!scheme)
      sum.add_plain(weight);
    else if (!sum.add_quantized(weight, *scheme))
      return std::nullopt;
    if (weight.group == model::WeightGroup::kMtp && weight.is_parameter) sum.add_mtp(weight.elements());
  }
  return sum.result();
}

bool recipe_takes(Recipe recipe, const model::Weight& weight) {
  using model::WeightGroup;
  switch (weight.group) {
    case WeightGroup::kExperts:
      return true;
    case WeightGroup::kSharedExperts:
    case WeightGroup::kFfn:
      return recipe >= Recipe::kFeedForward;
    case WeightGroup::kAttention:
      return recipe == Recipe::kAllLinear ||
             (recipe == Recipe::kFeedForwardAndOutput && module_of(weight).ends_with(".o_proj"));
    case WeightGroup::kState:
      return recipe == Recipe::kAllLinear;
    default:
      return false;
  }
}

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

std::string name_in_files(const model::Weight& weight, FileNaming naming) {
  constexpr std::string_view kModel = "model.";
  std::string module = module_of(weight);
  if (naming == FileNaming::kBehindLanguageModel) module.insert(0, "language_model.");
  if (naming == FileNaming::kWithinModel && module.starts_with(kModel))
    module.insert(kModel.size(), "language_model.");
  return module;
}

// Whether the declaration tells modules of layers apart by these names: leaves some, or gives them schemes
// that differ.
bool tells_apart(const model::ModelSpec& spec, const model::Quantization& quantization, FileNaming naming) {
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
std::optional<FileNaming> naming_of(const model::ModelSpec& spec, const model::Quantization& quantization) {
  if (!lists_modules(quantization)) return FileNaming::kAsInSpec;
  if (spec.has_file_names && tells_apart(spec, quantization, FileNaming::kAsInSpec))
    return FileNaming::kAsInSpec;
  for (const FileNaming naming : {FileNaming::kBehindLanguageModel, FileNaming::kWithinModel})
    if (tells_apart(spec, quantization, naming)) return naming;
  return std::nullopt;
}

}  // namespace

bool can_ask_about(const model::ModelSpec& spec, const model::Quantization& quantization) {
  // Is it left, and by which scheme is it stored; with a list, under three names before.
  const std::size_t num_questions = lists_modules(quantization) ? 7 : 2;
  return quantization.can_answer(num_questions * spec.weights.size());
}

std::optional<DeclaredSchemes> DeclaredSchemes::find(const model::ModelSpec& spec,
                                                     const model::Quantization& quantization) {
  if (!can_ask_about(spec, quantization)) return std::nullopt;
  const auto naming = naming_of(spec, quantization);
  return naming ? std::optional(DeclaredSchemes(quantization, *naming)) : std::nullopt;
}

const QuantizationScheme* DeclaredSchemes::scheme_of(const model::Weight& weight) const {
  return scheme_under_name(weight, *quantization_, name_in_files(weight, naming_));
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
  if (!quantization) return sum_up(spec, [](const model::Weight&) { return nullptr; });
  if (!quantization->main_scheme()) return std::nullopt;
  const auto schemes = DeclaredSchemes::find(spec, *quantization);
  if (!schemes) return std::nullopt;
  return sum_up(spec, [&](const model::Weight& weight) { return schemes->scheme_of(weight); });
}

std::optional<StoredCheckpoint> checkpoint_by_recipe(const model::ModelSpec& spec, Recipe recipe,
                                                     const QuantizationScheme& scheme) {
  if (!spec.has_all_weights) return std::nullopt;
  return sum_up(spec, [&](const model::Weight& weight) {
    return is_matrix(weight) && recipe_takes(recipe, weight) ? &scheme : nullptr;
  });
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
