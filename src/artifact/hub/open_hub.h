// SPDX-License-Identifier: Apache-2.0
// MODEL as org/name[@revision]: a snapshot of the shared cache, or what the hub says, or the built-in
// catalogue, in that order of trust. Downloads no more than the caller needs. Any thread may call.
#pragma once

#include <memory>
#include <string>

#include "artifact/artifact.h"
#include "artifact/hub/listing.h"
#include "artifact/hub/settings.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// Opens a hub id.
/// A commit whose snapshot is in the cache is taken without asking. Where the hub cannot be reached or does
/// not give its files, the cache's snapshot of the revision is taken, else the catalogue's config, each with
/// a finding that says so. Errors: kNetwork with the hub's reason.
Result<std::shared_ptr<const Artifact>> open_hub(const HubId& id, const OpenOptions& options,
                                                 const HubSettings& settings);

}  // namespace plimsoll::artifact
