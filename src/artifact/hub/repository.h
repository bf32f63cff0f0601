// SPDX-License-Identifier: Apache-2.0
// Which commit does a revision mean today, and which files does it have? Asks the hub once and keeps the
// answers in the shared cache. One thread.
#pragma once

#include <string>
#include <vector>

#include "artifact/hub/client.h"
#include "artifact/hub/listing.h"
#include "artifact/hub_cache.h"
#include "base/finding.h"

namespace plimsoll::artifact {

struct Repository {
  std::string asked;     // the name that was asked for
  std::string revision;  // that was asked for; "main" when none was
  HubInfo info;
  std::vector<HubFile> files;
  bool is_listing_kept = false;  // files are what an earlier run was told

  /// The name to ask for files under: today's, which needs no redirects.
  const std::string& name() const { return info.id.empty() ? asked : info.id; }
};

/// Asks for commit and files of `id`.
/// Errors: kNetwork; `kind` says which refusal it was.
Result<Repository> ask_repository(HubClient& client, const HubCache& cache, const HubId& id, Refusal& kind);

/// Asks for the files of the repository's commit, whatever the cache keeps.
/// Errors: as ask_repository.
Result<std::vector<HubFile>> ask_files(HubClient& client, const Repository& repository, Refusal& kind);

/// What is worth telling about how a revision was found: REVISION_NOT_PINNED, REPO_RENAMED.
Findings origin_findings(const std::string& asked, const std::string& today, const std::string& revision,
                         const std::string& commit);

}  // namespace plimsoll::artifact
