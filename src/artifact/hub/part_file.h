// SPDX-License-Identifier: Apache-2.0
// A file that is on its way: blobs/ETAG.XXXXXXXX.incomplete, taken over from an earlier run where there is
// one, renamed when it is whole. Holds the blob's lock while it lives, where the file system has locks, and
// always one on the part itself; a name of its own keeps two writers apart where there are none. Owns its
// descriptors; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plimsoll::artifact {

/// A name beside the blob that nobody else has: what lies there is on its way, and never a file of a model.
std::string part_name(const std::string& blob);

class PartFile {
 public:
  /// `blob` is the final path, `lock` the lock's; parts of more than `max_bytes` are not taken over.
  /// Errors: kUsage when nothing can be written there.
  static Result<PartFile> open(const std::string& blob, const std::string& lock, std::int64_t max_bytes);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&& other) noexcept;
  ~PartFile();

  const std::string& path() const { return path_; }
  std::int64_t size() const { return size_; }

  /// Errors: kUsage with the system's reason (a full disk).
  Status append(std::string_view piece);
  /// Drops what is there.
  Status restart();
  /// Gives the file its final name, once its bytes are on the disk. Errors: kUsage.
  Status finish(const std::string& blob);
  /// Removes the file.
  void discard();

 private:
  PartFile() = default;
  std::string path_;
  int fd_ = -1, lock_fd_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace plimsoll::artifact
