// SPDX-License-Identifier: Apache-2.0
// Brings a repository, or the files of it that patterns name, into the shared cache, and writes down what
// came.
#pragma once

#include <string>
#include <vector>

#include "artifact/hub/download.h"
#include "artifact/lock.h"
#include "base/finding.h"
#include "base/result.h"

namespace plimsoll::artifact {

struct PullOptions {
  std::string model;                 // org/name[@revision], or the path of a lock record
  std::vector<std::string> include;  // globs of paths; empty: all files
  Progress progress;                 // may be empty
  bool checks_all = false;  // files that are here already are read whole; a lock record asks for it too
};

struct Pulled {
  std::string folder;  // of the snapshot
  Bytes bytes;         // of the files that were asked for
  LockRecord record;   // all fields but those of the engine and max_model_len
  Findings findings;   // REVISION_NOT_PINNED, REPO_RENAMED, LOCK_MISMATCH
};

/// Errors: kUsage for a MODEL that is no hub's or patterns that name no file; kMalformed for a repository
/// without files; kNetwork from the hub.
Result<Pulled> pull(const PullOptions& options);

}  // namespace plimsoll::artifact
