// SPDX-License-Identifier: Apache-2.0
#include "inspect/unquantized.h"

#include <algorithm>
#include <unordered_set>

#include "inspect/parameter_groups.h"

namespace plimsoll::inspect {
namespace {

using NameSet = std::unordered_set<std::string>;

constexpr int kMaxAncestors = 16;  // modules lie a dozen deep; what lies deeper is listed by itself

void add_with_ancestors(const std::string& module, NameSet& names) {
  int depth = 0;
  for (std::size_t dot = module.find('.'); dot != std::string::npos && depth < kMaxAncestors;
       dot = module.find('.', dot + 1), ++depth)
    names.insert(module.substr(0, dot));
  names.insert(module);
}

// The highest ancestor under which nothing is quantized; the module itself at the least.
std::string widest(const std::string& module, const NameSet& quantized) {
  int depth = 0;
  for (std::size_t dot = module.find('.'); dot != std::string::npos && depth < kMaxAncestors;
       dot = module.find('.', dot + 1), ++depth) {
    const std::string ancestor = module.substr(0, dot);
    if (!quantized.contains(ancestor)) return ancestor;
  }
  return module;
}

}  // namespace

bool is_quantizable(const model::TensorKind& tensors, const model::StoredKind& kind) {
  if (kind.is_companion || kind.is_quantized || kind.part != model::Part::kWeight) return false;
  if (tensors.shape.size() < 2 || tensors.elements == 0 || is_buffer(tensors)) return false;
  if (tensors.dtype != DType::kBF16 && tensors.dtype != DType::kF16 && tensors.dtype != DType::kF32)
    return false;
  return kind.has_ending ||
         !(tensors.pattern.ends_with("bias") || group_of(tensors.pattern) == model::WeightGroup::kNorm);
}

std::string module_in_layer(const std::string& pattern, std::int64_t number) {
  const std::size_t star = pattern.find('*');
  if (star == std::string::npos || number < 0) return pattern;
  return pattern.substr(0, star) + std::to_string(number) + pattern.substr(star + 1);
}

std::vector<std::string> unquantized_modules(const model::StoredWeights& stored) {
  NameSet quantized, quantized_patterns, in_layers;
  for (const model::StoredKind& kind : stored.kinds) {
    if (!kind.is_quantized) continue;
    quantized_patterns.insert(kind.module);
    add_with_ancestors(kind.module, quantized);
  }
  const auto need_layers = [&] {  // made for the models that mix, once
    if (!in_layers.empty()) return;
    for (std::size_t i = 0; i < stored.kinds.size(); ++i)
      if (stored.kinds[i].is_quantized)
        for (const model::NumberRun& run : stored.tensors.kinds[i].runs)
          add_with_ancestors(module_in_layer(stored.kinds[i].module, run.number), in_layers);
  };
  std::vector<std::string> result;
  NameSet listed;
  const auto list = [&](std::string module) {
    if (listed.insert(module).second) result.push_back(std::move(module));
  };
  for (std::size_t i = 0; i < stored.kinds.size(); ++i) {
    if (!is_quantizable(stored.tensors.kinds[i], stored.kinds[i])) continue;
    const std::string& module = stored.kinds[i].module;
    if (!quantized_patterns.contains(module)) {
      list(widest(module, quantized));
      continue;
    }
    need_layers();
    for (const model::NumberRun& run : stored.tensors.kinds[i].runs)
      list(widest(module_in_layer(module, run.number), in_layers));
  }
  return result;
}

}  // namespace plimsoll::inspect
