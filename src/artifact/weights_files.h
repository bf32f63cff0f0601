// SPDX-License-Identifier: Apache-2.0
// Which of a folder's files are the weights, and what do they hold together? Chooses one set as transformers
// and vLLM do (single file, then index, then shards by name, then GGUF) and reads its headers.
// Fills ArtifactParts; single thread.
#pragma once

#include <string_view>
#include <vector>

#include "artifact/store.h"

namespace plimsoll::artifact {

/// Finds and reads the weights of `parts.folder`, whose `files` are listed; sets form, mappings and tensors.
void read_folder_weights(ArtifactParts& parts);

/// Index of a path in `files`, or -1. Fast where they are sorted by path.
int find_file(const std::vector<File>& files, std::string_view path);

}  // namespace plimsoll::artifact
