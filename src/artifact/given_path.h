// SPDX-License-Identifier: Apache-2.0
// What does the path by which a model was given say of it? Whether it is one file alone, and the name of the
// repository that a cache's folder stands for. Pure; any thread.
#pragma once

#include <optional>
#include <string>

#include "artifact/artifact.h"

namespace plimsoll::artifact {

/// True when the model is one file that was given by its own path: a config, a tokenizer, a GGUF file.
bool is_lone_file(const Artifact& artifact);

/// The repository whose snapshot in a hub cache this folder is: "org/name" for
/// .../models--org--name/snapshots/COMMIT. Any other folder above "snapshots" gives its own name. Nothing for
/// a path that is no snapshot.
std::optional<std::string> repository_of_snapshot(const std::string& folder);

}  // namespace plimsoll::artifact
