// SPDX-License-Identifier: Apache-2.0
// Which files of a repository does a question need? Small ones that describe the model, and the weights that
// loaders would take. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artifact/hub/listing.h"
#include "base/json.h"

namespace plimsoll::artifact {

/// Files that describe the model: configs, indexes, tokenizer, templates, processors, licence, card.
std::vector<HubFile> small_files(const std::vector<HubFile>& files);

struct WeightFiles {
  std::vector<std::string> taken;  // what a loader reads
  std::string index;               // the index of a sharded set; empty when there is none
  enum class Kind { kNone, kSafetensors, kGguf, kPickle } kind = Kind::kNone;
};
/// The weights among the top folder's files. `index` is the content of the set's index (null when unknown:
/// then every file of the kind is taken).
WeightFiles weight_files(const std::vector<HubFile>& files, const Json& index);
/// Path of the index of the repository's safetensors files; empty when there is none.
std::string index_file(const std::vector<HubFile>& files);

bool has_tokenizer_file(const std::vector<HubFile>& files);
const HubFile* find_hub_file(const std::vector<HubFile>& files, std::string_view path);

/// True when `path` matches a pattern of *, ? and [...] as Python's fnmatch does (* also takes slashes); a
/// pattern that ends in a slash takes all below it.
bool matches_glob(std::string_view path, std::string_view pattern);

}  // namespace plimsoll::artifact
