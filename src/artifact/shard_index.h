// SPDX-License-Identifier: Apache-2.0
// What does model.safetensors.index.json promise, and do the shards keep it? Reads the index, the headers of
// the shards it names, and holds the two against each other. No name in an index is followed out of the
// folder. Fills ArtifactParts; single thread.
#pragma once

#include <string>
#include <vector>

#include "artifact/store.h"

namespace plimsoll::artifact {

/// Reads `index` (a file of parts.folder) and the shards it names; returns the shards that were read.
/// `likely`: files that it names as a rule, sorted; their headers are read while the index is, and forgotten
/// where it names others.
std::vector<std::string> read_indexed(const std::string& index, const std::vector<std::string>& likely,
                                      ArtifactParts& parts);

}  // namespace plimsoll::artifact
