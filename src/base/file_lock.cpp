// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace plimsoll {

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<FileLock> FileLock::take(const std::string& path) {
  FileLock lock;
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return lock;
  lock.fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (lock.fd_ < 0)
    return fail(ErrorCode::kUsage, std::string("cannot write the file: ") + std::strerror(errno), path,
                "check that the folder exists and is writable");
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fail(ErrorCode::kUsage, "another process is writing the file", path,
                "wait for its end, or name another file");
  return lock;
}

}  // namespace plimsoll
