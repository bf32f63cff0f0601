// SPDX-License-Identifier: Apache-2.0
// Who may write a file that several processes could write at a time? The first one that asks. The lock goes
// with the process, however it ends. Any thread may call; nobody waits.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace plimsoll {

class FileLock {
 public:
  /// Holds nothing.
  FileLock() = default;
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();

  /// Creates `path` when nothing is there. Devices, pipes and file systems without locks are held by nobody.
  /// Errors: kUsage when the file cannot be written, or another process holds it.
  static Result<FileLock> take(const std::string& path);

 private:
  int fd_ = -1;
};

}  // namespace plimsoll
