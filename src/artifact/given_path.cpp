// SPDX-License-Identifier: Apache-2.0
#include "artifact/given_path.h"

#include <filesystem>
#include <string_view>

namespace plimsoll::artifact {

namespace fs = std::filesystem;

bool is_lone_file(const Artifact& artifact) {
  if (artifact.files().size() != 1) return false;
  const fs::path own(artifact.path_of(artifact.files().front()));
  return !own.empty() && own.lexically_normal() == fs::path(artifact.root()).lexically_normal();
}

std::optional<std::string> repository_of_snapshot(const std::string& folder) {
  fs::path path = fs::path(folder).lexically_normal();
  if (path.filename().empty()) path = path.parent_path();
  if (path.parent_path().filename() != "snapshots") return std::nullopt;
  std::string name = path.parent_path().parent_path().filename().string();
  constexpr std::string_view kPrefix = "models--";
  if (!name.starts_with(kPrefix)) return name;
  name.erase(0, kPrefix.size());
  // Neither an organisation nor a model may have "--" in its name.
  if (const std::size_t at = name.find("--"); at != std::string::npos) name.replace(at, 2, "/");
  return name;
}

}  // namespace plimsoll::artifact
