// SPDX-License-Identifier: Apache-2.0
#include "artifact/weight_set.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "artifact/content.h"
#include "artifact/shard_name.h"

namespace plimsoll::artifact {
namespace {

using Names = std::vector<std::string>;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "model.safetensors.index.json", "model.safetensors.index.fp16.json"
bool is_index_name(std::string_view name) {
  return name.ends_with(".json") && name.find(".safetensors.index.") != std::string_view::npos;
}

bool is_adapter(std::string_view name) {
  return name.starts_with("adapter");
}

// Files of trainers: no weights of the model.
bool is_training_state(std::string_view name) {
  return name.starts_with("optimizer") || name.starts_with("scheduler") || name.starts_with("training");
}

// Among names that are as good as each other transformers' own goes first.
std::string best_name(const Names& names) {
  const auto rank = [](std::string_view name) { return name.starts_with("model") ? 0 : 1; };
  return *std::min_element(names.begin(), names.end(),
                           [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
}

struct TopFiles {
  Names safetensors, indices, gguf, pickles, adapters;
};

TopFiles top_files(std::span<const std::string_view> paths) {
  TopFiles top;
  for (const std::string_view path : paths) {
    if (path.find('/') != std::string_view::npos) continue;
    if (path.ends_with(".safetensors") && is_adapter(path))
      top.adapters.emplace_back(path);
    else if (path.ends_with(".safetensors") && !is_training_state(path))
      top.safetensors.emplace_back(path);
    if (path.ends_with(".gguf")) top.gguf.emplace_back(path);
    if (is_index_name(path)) top.indices.emplace_back(path);
    if (has_pickle_name(path)) top.pickles.emplace_back(path);
  }
  return top;
}

WeightSet safetensors_set(const TopFiles& top) {
  WeightSet set;
  set.kind = WeightSet::Kind::kSafetensors;
  if (contains(top.safetensors, kSingle)) {
    set.files = {std::string(kSingle)};
    set.has_index_beside = contains(top.indices, kIndex);
    return set;
  }
  Names split;
  std::copy_if(top.safetensors.begin(), top.safetensors.end(), std::back_inserter(split),
               [](const auto& name) { return shard_name(name).has_value(); });
  if (!top.indices.empty())
    set.index = contains(top.indices, kIndex) ? std::string(kIndex) : best_name(top.indices);
  if (!split.empty()) {
    set.files = parts_of(best_name(split), split);
    set.is_split = true;
  } else if (!top.safetensors.empty() && set.index.empty()) {
    // vLLM reads every file; of variants ("model.fp16.safetensors") each is the whole model.
    const std::string best = best_name(top.safetensors);
    set.files = best.starts_with("model") ? Names{best} : top.safetensors;
  }
  return set;
}

WeightSet gguf_set(const Names& names) {
  WeightSet set;
  set.kind = WeightSet::Kind::kGguf;
  Names models = names;
  // A projector of a vision encoder and a matrix of importances go with a model, they are none.
  std::erase_if(models, [](const std::string& name) {
    return name.find("mmproj") != std::string::npos || name.find("imatrix") != std::string::npos;
  });
  if (models.empty()) models = names;
  set.files = parts_of(models.front(), models);
  set.is_split = shard_name(models.front()).has_value();
  std::copy_if(models.begin(), models.end(), std::back_inserter(set.others),
               [&](const auto& name) { return !contains(set.files, name); });
  return set;
}

}  // namespace

std::vector<std::string> parts_of(std::string_view name, std::span<const std::string> names) {
  const auto whole = shard_name(name);
  if (!whole) return {std::string(name)};
  Names parts;
  for (const std::string& other : names)
    if (const auto part = shard_name(other); part && part->same_set(*whole)) parts.push_back(other);
  std::sort(parts.begin(), parts.end());
  return parts;
}

WeightSet choose_weight_set(std::span<const std::string_view> paths) {
  TopFiles top = top_files(paths);
  WeightSet set;
  if (!top.safetensors.empty() || !top.indices.empty()) {
    set = safetensors_set(top);
  } else if (!top.gguf.empty()) {
    set = gguf_set(top.gguf);
  } else {
    if (!top.pickles.empty()) set.kind = WeightSet::Kind::kPickle;
    set.files = std::move(top.pickles);
  }
  set.adapters = std::move(top.adapters);
  return set;
}

}  // namespace plimsoll::artifact
