// SPDX-License-Identifier: Apache-2.0
// Which commit of its repository is this folder? A hub cache names it in the path; a folder downloaded with
// --local-dir keeps it in .cache/huggingface, a clone in .git. A folder that comes from no repository has
// none, which is no fault. Ids on the hub are the hub client's part. Reads a few small files.
#pragma once

#include "inspect/inspect.h"
#include "inspect/model_card.h"
#include "inspect/subject.h"

namespace plimsoll::inspect {

/// Fills report.commit where the artifact does not know it. Findings: REVISION_UNKNOWN (info) for a folder
/// with a model card and no trace of a commit, REVISION_MIXED (warning) for files of several commits.
/// `card` may be null. Source: docs/formats/hub_folder.md.
void check_revision(const Subject& subject, const ModelCard* card, Report& report);

}  // namespace plimsoll::inspect
