// SPDX-License-Identifier: Apache-2.0
// MODEL and --lock as every verb takes them.
#pragma once

#include <string>

#include "artifact/artifact.h"
#include "base/result.h"
#include "cli/verbs.h"

namespace plimsoll::cli {

/// MODEL may be left out beside --lock: the record then says which model.
/// Errors: kUsage when there is neither.
Status settle_model(std::string& model, CommonFlags& common);

/// How a verb opens MODEL: with the lock record and the built-in catalogue.
artifact::OpenOptions open_options(const CommonFlags& common, artifact::Need need);

}  // namespace plimsoll::cli
