// SPDX-License-Identifier: Apache-2.0
// An artifact seen from outside its files: what a hub said about it, findings of its origin, and, when only
// headers are here, the refusal to give tensor bytes. Owns the artifact it shows and the folder that was made
// for it. Reading is safe from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "artifact/artifact.h"
#include "artifact/lock.h"
#include "base/result.h"
#include "base/temporary_folder.h"

namespace plimsoll::artifact {

struct ViewParts {
  std::shared_ptr<const Artifact> shown;
  std::optional<TemporaryFolder> folder;  // that `shown` lies in
  std::optional<HubFacts> hub;
  /// When not empty, instead of the shown ones: those first, in their order (Tensor::file and weights_files()
  /// count in it), then files that only the hub has.
  std::vector<File> files;
  Findings findings;  // before those of `shown`
  std::optional<LockRecord> lock;
  std::unordered_set<std::string> stand_ins;  // paths of files whose content is not in `folder`
  bool has_tensor_bytes = true;
};

std::shared_ptr<const Artifact> make_view(ViewParts parts);

}  // namespace plimsoll::artifact
