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
std::vector<std::string> read_indexed(const std::string& index, ArtifactParts& parts);

}  // namespace plimsoll::artifact
