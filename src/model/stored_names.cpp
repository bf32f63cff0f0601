// SPDX-License-Identifier: Apache-2.0
// What the ends of tensor names mean.
#include <algorithm>
#include <array>
#include <utility>

#include "model/model.h"
#include "model/stored_weights.h"

namespace plimsoll::model {
namespace {

struct Ending {
  std::string_view text;  // without the sign that joins it
  Part part;
  bool may_join_with_underscore;  // experts.gate_up_proj_scales as well as up_proj.scales
};

// Longer endings stand before those that they end with.
constexpr std::array<Ending, 81> kEndings{{
    {"weight_scale_inv", Part::kScale, true},
    {"weight_scale_2", Part::kSecondScale, true},
    {"weight_scales", Part::kScale, false},
    {"weight_scale", Part::kScale, true},
    {"weight_global_scale", Part::kSecondScale, true},
    {"weight_zero_point", Part::kZeroPoint, true},
    {"weight_shape", Part::kShape, true},
    {"weight_g_idx", Part::kOrder, false},
    {"weight_packed", Part::kPacked, true},
    {"weight_format", Part::kTag, false},
    {"weight.absmax", Part::kAbsmax, false},
    {"weight.quant_map", Part::kQuantMap, false},
    {"weight.nested_absmax", Part::kNestedScale, false},
    {"weight.nested_quant_map", Part::kNestedScale, false},
    {"weight.quant_state.bitsandbytes__nf4", Part::kQuantState, false},
    {"weight.quant_state.bitsandbytes__fp4", Part::kQuantState, false},
    {"weight._data._data", Part::kData, false},
    {"weight._data", Part::kData, false},
    {"weight._scale", Part::kScale, false},
    {"weight._shift", Part::kZeroPoint, false},
    {"weight._zeropoint", Part::kZeroPoint, false},
    {"weight.compressed", Part::kCompressed, false},
    {"weight.bitmask", Part::kBitmask, false},
    {"weight.row_offsets", Part::kTag, false},
    {"weight.shape", Part::kShape, false},
    {"_weight_qdata", Part::kData, false},
    {"_weight_scale_and_zero", Part::kScale, false},
    {"_weight_act_pre_scale", Part::kActivation, false},
    {"_weight_act_per_tensor_scale", Part::kActivation, false},
    {"_weight_per_tensor_scale", Part::kSecondScale, false},
    {"_weight_scale", Part::kScale, false},
    {"_weight_zero_point", Part::kZeroPoint, false},
    {"_weight_act_scale", Part::kActivation, false},
    {"_weight_act_zero_point", Part::kActivation, false},
    {"qweight", Part::kQweight, false},
    {"qzeros", Part::kZeroPoint, false},
    {"scales", Part::kScale, true},
    {"biases", Part::kZeroPoint, false},  // MLX
    {"g_idx", Part::kOrder, false},
    {"SCB", Part::kRowScale, false},
    {"blocks", Part::kBlocks, true},
    {"W_q", Part::kHqq, false},
    {"compressed", Part::kCompressed, false},
    {"bitmask", Part::kBitmask, false},
    {"row_offsets", Part::kTag, false},
    {"scale_packed", Part::kScale, false},
    {"nbits", Part::kTag, false},
    {"group_size", Part::kTag, false},
    {"axis", Part::kTag, false},
    {"packing", Part::kTag, false},
    {"unpack_view_dtype", Part::kTag, false},
    {"view_as_float", Part::kTag, false},
    {"optimize", Part::kTag, false},
    {"round_zero", Part::kTag, false},
    {"stores_quant_config", Part::kTag, false},
    {"channel_wise", Part::kTag, false},
    {"compute_dtype", Part::kTag, false},
    {"encoded_state_dict", Part::kTag, false},
    {"offload_meta", Part::kTag, false},
    {"quant_zero", Part::kTag, false},
    {"quant_scale", Part::kTag, false},
    {"input_global_scale", Part::kActivation, true},
    {"input_zero_point", Part::kActivation, true},
    {"output_zero_point", Part::kActivation, true},
    {"input_scale", Part::kActivation, true},
    {"output_scale", Part::kActivation, true},
    {"activation_scale", Part::kActivation, true},
    {"pre_quant_scale", Part::kActivation, true},
    {"prob_output_scale", Part::kActivation, false},
    {"kv_scale", Part::kActivation, false},
    {"q_scale", Part::kActivation, false},
    {"k_scale", Part::kActivation, false},
    {"v_scale", Part::kActivation, false},
    {"scale_inv", Part::kScale, true},
    {"scale", Part::kScale, true},
    {"shape", Part::kShape, false},
    {"meta", Part::kTag, false},
    {"zero", Part::kZeroPoint, false},
    {"B", Part::kMarlin, false},
    {"s", Part::kScale, false},
    {"weight", Part::kWeight, false},
}};

bool ends_here(std::string_view name, const Ending& ending) {
  if (name.size() <= ending.text.size() + 2 || !name.ends_with(ending.text)) return false;
  const char joint = name[name.size() - ending.text.size() - 1];
  if (joint == '.') return true;
  // "gate_up_proj_scales", but not torchao's "up_proj._weight_scale".
  return joint == '_' && ending.may_join_with_underscore && name[name.size() - ending.text.size() - 2] != '.';
}

}  // namespace

StoredName split_name(std::string_view name) {
  for (const Ending& ending : kEndings)
    if (ends_here(name, ending))
      return {name.substr(0, name.size() - ending.text.size() - 1), ending.part, true};
  return {name, Part::kWeight, false};
}

Weight copy_of(const Weight& weight, int number) {
  Weight one = weight;
  one.copies = 1;
  if (const std::size_t at = one.hf_name.find("{}"); at != std::string::npos)
    one.hf_name.replace(at, 2, std::to_string(number));
  return one;
}

bool is_stacked(const artifact::Artifact& artifact, const Weight& weight) {
  if (artifact.form() == artifact::Form::kGguf) return weight.copies > 1;
  return weight.hf_name.find("{}") == std::string::npos;
}

namespace {

// A module's tensors of any ending, joined by that sign.
std::vector<const artifact::Tensor*> companions(const artifact::Artifact& artifact, std::string_view module,
                                                char joint) {
  std::vector<const artifact::Tensor*> tensors;
  std::string tried(module);
  tried += joint;
  for (const Ending& ending : kEndings) {
    if (joint == '_' && !ending.may_join_with_underscore) continue;
    tried.resize(module.size() + 1);
    tried += ending.text;
    if (const artifact::Tensor* tensor = artifact.find(tried)) tensors.push_back(tensor);
  }
  return tensors;
}

}  // namespace

std::vector<const artifact::Tensor*> tensors_of(const artifact::Artifact& artifact, const Weight& weight) {
  std::vector<const artifact::Tensor*> tensors;
  const bool is_gguf = artifact.form() == artifact::Form::kGguf;
  if (!is_gguf && weight.copies > 1 && !is_stacked(artifact, weight)) {
    for (int i = 0; i < weight.copies; ++i)
      for (const artifact::Tensor* tensor : tensors_of(artifact, copy_of(weight, i)))
        tensors.push_back(tensor);
    return tensors;
  }
  const StoredName name = split_name(weight.hf_name);
  const bool may_have_companions = !is_gguf && weight.shape.size() == 2;
  if (may_have_companions && name.has_suffix) return companions(artifact, name.module, '.');
  if (const artifact::Tensor* tensor = find_tensor(artifact, weight)) return {tensor};
  if (may_have_companions) return companions(artifact, weight.hf_name, '_');
  return tensors;
}

}  // namespace plimsoll::model
