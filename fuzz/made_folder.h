// SPDX-License-Identifier: Apache-2.0
// A folder that a fuzz target fills with the files of one input, for readers that take a path. It lies in the
// system's folder for temporary files and goes with the program; whoever fuzzes for long sets TMPDIR to one
// in memory.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace plimsoll::fuzz {

class MadeFolder {
 public:
  MadeFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "plimsoll-fuzz-XXXXXX").string();
    if (!mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  ~MadeFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

  std::string path() const { return path_.string(); }

  /// The file `name`, with the folders above it, holds `content` from now on.
  void put(std::string_view name, std::string_view content) const {
    const auto path = path_ / name;
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!file.flush()) std::abort();
  }
  void remove(std::string_view name) const {
    std::error_code error;
    std::filesystem::remove(path_ / name, error);
  }

 private:
  std::filesystem::path path_;
};

}  // namespace plimsoll::fuzz
