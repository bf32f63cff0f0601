// SPDX-License-Identifier: Apache-2.0
// A folder for temporary files, removed with all it holds: when its owner goes, and also when SIGINT,
// SIGTERM, SIGHUP or SIGPIPE ends the process (docs/decisions/011-signals.md). Owns the folder. Making and
// removing are safe from any thread.
#pragma once

#include <string>

#include "base/result.h"

namespace plimsoll {

class TemporaryFolder {
 public:
  /// Errors: kUsage when none can be made.
  static Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  TemporaryFolder() = default;
  std::string path_;
  int watch_ = -1;  // in the table that the handler of signals looks through; -1: not in it
};

}  // namespace plimsoll
