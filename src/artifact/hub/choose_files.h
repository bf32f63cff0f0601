// SPDX-License-Identifier: Apache-2.0
// Which files of a repository does a question need? Small ones that describe the model, and the weights that
// loaders would take. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/hub/listing.h"
#include "artifact/weight_set.h"

namespace plimsoll::artifact {

/// Files that describe the model: configs, indexes, tokenizer, templates, processors, licence, card.
std::vector<HubFile> small_files(const std::vector<HubFile>& files);

/// The weights that loaders take of these files: as the reader of a local folder chooses them.
WeightSet weight_set(const std::vector<HubFile>& files);
/// The files of the set that are there, in the order of the listing. `indexed` are the names in the set's
/// index, where it has one. Nothing when there is an index and its names are not known: that is not the same
/// as no weights.
std::optional<std::vector<std::string>> weight_files(const std::vector<HubFile>& files, const WeightSet& set,
                                                     const std::optional<std::vector<std::string>>& indexed);

bool has_tokenizer_file(const std::vector<HubFile>& files);
const HubFile* find_hub_file(const std::vector<HubFile>& files, std::string_view path);

/// True when `path` matches a pattern of *, ? and [...] as Python's fnmatch does (* also takes slashes); a
/// pattern that ends in a slash takes all below it.
bool matches_glob(std::string_view path, std::string_view pattern);

}  // namespace plimsoll::artifact
