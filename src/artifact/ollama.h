// SPDX-License-Identifier: Apache-2.0
// What does Ollama's store hold under a name? Reads the manifest of ollama:NAME[:TAG], checks that its
// layers' blobs are whole, and opens the model's blob in place as GGUF. Nothing is copied, nothing is
// fetched. Layout and findings: docs/formats/ollama.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/result.h"

namespace plimsoll::artifact {

/// Where a name's manifest lies below the store: registry.ollama.ai/library/NAME/latest, or what a longer
/// name (HOST/NAMESPACE/NAME:TAG) says. Nothing for what is no such name.
std::optional<std::string> ollama_manifest_path(std::string_view name);

/// Opens NAME[:TAG] of the store $OLLAMA_MODELS, or ~/.ollama/models.
/// Errors: kMalformed when there is no store or no model of this name; a damaged store becomes findings.
Result<std::shared_ptr<const Artifact>> open_ollama(const std::string& model, std::string_view name);

}  // namespace plimsoll::artifact
