// SPDX-License-Identifier: Apache-2.0
// Panels that outlive the process (`--packed-cache`): one file for a model, mapped at the next start instead
// of being made again. A file that does not fit is not used, never half used. Source: docs/formats/panels.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "base/result.h"

namespace plimsoll::engine {

/// Names what panels depend on: the model (add_model), their layout, `quantization` at load. 64 hex digits.
std::string panels_identity(const artifact::Artifact& artifact, std::string_view quantization);

/// Panels in a mapped file; they live as long as this or a copy.
struct KeptPanels {
  std::shared_ptr<const MappedFile> file;  // null: there is none
  std::string path;

  /// Begins at an address for vectors.
  std::span<const std::byte> panels() const;
  /// Whether the file became shorter while it was mapped: results since may rest on zeros.
  std::optional<Error> cut_error() const;
};

/// The `bytes` of panels that were kept; no file when there is none. Errors: kMalformed for a file that is
/// not what its name says.
Result<KeptPanels> map_panels(const std::string& folder, const std::string& identity, std::int64_t bytes);

/// Writes the file: whole or not at all. Errors: kUsage when it cannot be written.
Status keep_panels(const std::string& folder, const std::string& identity, std::span<const std::byte> panels);

}  // namespace plimsoll::engine
