// SPDX-License-Identifier: Apache-2.0
// Which of a model's files are its weights? One rule by names alone, for folders and for a hub's listing: a
// single file, then an index, then shards by name, then one file of another name; safetensors, then GGUF,
// then pickles. What the files hold is left to their readers. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::artifact {

struct WeightSet {
  enum class Kind { kNone, kSafetensors, kGguf, kPickle } kind = Kind::kNone;
  std::vector<std::string> files;     // that loaders take, sorted; with an index those that it likely names
  std::string index;                  // what says which files are taken; empty when their names do
  bool is_split = false;              // files are parts that their names count
  bool has_index_beside = false;      // a single safetensors file is taken, and an index names another set
  std::vector<std::string> others;    // GGUF files of other models
  std::vector<std::string> adapters;  // of PEFT: changes to a model, no weights of their own
};

/// The set among `paths`, which are sorted; files in folders below belong to other components.
WeightSet choose_weight_set(std::span<const std::string_view> paths);

/// Of `names` all parts of the split file that `name` is a part of, sorted; `name` alone when it is none.
std::vector<std::string> parts_of(std::string_view name, std::span<const std::string> names);

}  // namespace plimsoll::artifact
