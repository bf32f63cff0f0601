// SPDX-License-Identifier: Apache-2.0
// Opens a path on this machine, for those that bring its files there first. Any thread may call.
#pragma once

#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// A model folder, or a hub cache's. Errors: kMalformed when it holds nothing that can be opened.
Result<std::shared_ptr<const Artifact>> open_folder(const std::string& folder);

/// Any path: a folder, a .gguf file, a config, a tokenizer. Errors: kMalformed when it is none of these.
Result<std::shared_ptr<const Artifact>> open_path(const std::string& model);

}  // namespace plimsoll::artifact
