// SPDX-License-Identifier: Apache-2.0
// What all checks of one inspection look at. Views only; owned by inspect().
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "artifact/artifact.h"
#include "inspect/inspect.h"
#include "model/model.h"

namespace plimsoll::inspect {

/// What to do about a value that cannot be.
inline constexpr std::string_view kCorrect = "correct the value, or download the file again";

struct Subject {
  const artifact::Artifact& artifact;
  const Options& options;
  std::string config_file;      // "config.json", the lone file's name, or the GGUF's
  std::string figures_pointer;  // "" or "/text_config": where the language model's figures are
  const Json& figures;          // that object; GGUF metadata for GGUF

  bool is_gguf() const { return artifact.form() == artifact::Form::kGguf; }
  /// Whether the artifact has a file of this path.
  bool has_file(std::string_view path) const {
    const auto& files = artifact.files();
    return std::any_of(files.begin(), files.end(), [&](const auto& file) { return file.path == path; });
  }
  /// Place of a key among the figures: "config.json: /text_config/hidden_size".
  std::string place(std::string_view key) const {
    return config_file + ": " + (is_gguf() ? std::string() : figures_pointer + "/") + std::string(key);
  }
};

/// Appends a finding whose kind is a failed check, the usual one in this room.
inline void add_check(Findings& findings, std::string id, FindingLevel level, std::string where,
                      std::string message, std::string fix) {
  PLIMSOLL_DCHECK(!fix.empty(), "a finding without a fix");
  findings.push_back({std::move(id), level, FindingKind::kCheckFailed, std::move(where), std::move(message),
                      std::move(fix)});
}

}  // namespace plimsoll::inspect
