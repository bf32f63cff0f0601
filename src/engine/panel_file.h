// SPDX-License-Identifier: Apache-2.0
// Panels that outlive the process (`--packed-cache`): one file for a model, mapped at the next start instead
// of being made again. A file that does not fit is not used, never half used. Source: docs/formats/panels.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/result.h"

namespace plimsoll::engine {

/// Names what panels depend on: the model (add_model), their layout, `quantization` at load. 64 hex digits.
std::string panels_identity(const artifact::Artifact& artifact, std::string_view quantization);

/// The panels of a file, `bytes` of them, at an address for vectors; they live as long as the pointer. Null
/// when there is no file. Errors: kMalformed for a file that is not what its name says.
Result<std::shared_ptr<std::byte>> map_panels(const std::string& folder, const std::string& identity,
                                              std::int64_t bytes);

/// Writes the file: whole or not at all. Errors: kUsage when it cannot be written.
Status keep_panels(const std::string& folder, const std::string& identity, std::span<const std::byte> panels);

}  // namespace plimsoll::engine
