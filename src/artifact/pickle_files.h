// SPDX-License-Identifier: Apache-2.0
// What can be said of weights that are Python pickles (.bin, .pt, .pth, .ckpt) without running them? Their
// archives' members and sizes, and whether the files of a sharded set are there. Nothing is ever unpickled.
// Fills ArtifactParts; single thread.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "artifact/store.h"

namespace plimsoll::artifact {

/// Tells the pickles of parts.folder: as the only weights (PICKLE_ONLY), or as what lies beside others
/// (`has_weights`: PICKLE_PRESENT).
void note_pickles(ArtifactParts& parts, bool has_weights);

/// The same of a listing alone, beside weights that are taken: `paths` of which none was read. Nothing where
/// no file at the root has a pickle's name.
std::optional<Finding> pickle_beside(std::span<const std::string_view> paths);

}  // namespace plimsoll::artifact
