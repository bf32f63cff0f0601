// SPDX-License-Identifier: Apache-2.0
// A machine made up for a test: a folder in which /proc and /sys lie.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace plimsoll {

/// A root folder with files of the kernel's making.
class FakeRoot {
 public:
  FakeRoot()
      : path_(std::filesystem::path(::testing::TempDir()) / ("plimsoll_root_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace plimsoll
