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

/// What MODEL may be, for the help of verbs that take every kind.
inline constexpr const char* kModelHelp =
    "model folder, .gguf file, config.json, org/name[@revision] of a hub, ollama:NAME[:TAG], or a lock "
    "record";

/// The variables that a MODEL of a hub or of Ollama is read with, for the help of such verbs.
inline constexpr const char* kModelEnvironment =
    "\nEnvironment:\n"
    "  HF_ENDPOINT, HF_TOKEN        the hub, and the token for gated and private models\n"
    "  HF_HOME, HF_HUB_CACHE        where the cache is that huggingface_hub shares\n"
    "  HF_HUB_OFFLINE=1             no request: cache and built-in catalogue only\n"
    "  PLIMSOLL_HUB_MAX_WAIT_S      longest wait for a busy hub, in seconds (30)\n"
    "  OLLAMA_MODELS                Ollama's store";

/// How a verb opens MODEL: with the lock record and the built-in catalogue.
artifact::OpenOptions open_options(const CommonFlags& common, artifact::Need need);

}  // namespace plimsoll::cli
