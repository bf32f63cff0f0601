// SPDX-License-Identifier: Apache-2.0
#include "tests/testing/golden.h"

#include <cstdlib>
#include <filesystem>

namespace plimsoll::testing {

std::string data_path(const std::string& relative) {
  return std::string(PLIMSOLL_SOURCE_DIR) + "/data/" + relative;
}

std::string golden_path(const std::string& relative) {
  if (const char* full = std::getenv("PLIMSOLL_GOLDEN"); full && *full) {
    const std::string path = std::string(full) + "/" + relative;
    if (std::filesystem::exists(path)) return path;
  }
  return data_path("golden/" + relative);
}

std::vector<std::string> present(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const auto& name : names)
    if (std::filesystem::exists(golden_path(folder + "/" + name))) found.push_back(name);
  return found;
}

}  // namespace plimsoll::testing
