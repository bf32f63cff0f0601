// SPDX-License-Identifier: Apache-2.0
// A GGUF model is one file or a split set; which files are it, and do the parts belong together?
// Fills ArtifactParts; single thread.
#pragma once

#include <string>
#include <vector>

#include "artifact/store.h"
#include "artifact/weight_set.h"

namespace plimsoll::artifact {

/// Reads a folder's GGUF model; that there are others beside it is told.
void read_folder_gguf(const WeightSet& set, ArtifactParts& parts);

/// Reads these files, which parts.files lists, as the parts of one model.
void read_gguf_files(const std::vector<std::string>& names, ArtifactParts& parts);

/// Reads the GGUF file at `path`, or the whole set when its name is a split's; lists the files in `parts`.
void read_lone_gguf(const std::string& path, ArtifactParts& parts);

}  // namespace plimsoll::artifact
