// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/part_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <random>
#include <system_error>
#include <utility>

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".incomplete";

tl::unexpected<Error> cannot_write(const std::string& path) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT;
  return fail(ErrorCode::kUsage, std::string("the cache cannot be written: ") + std::strerror(errno), path,
              is_full ? "make room on this disk, or name another cache with HF_HUB_CACHE"
                      : "make it writable, or name another cache with HF_HUB_CACHE");
}

// The largest part of `blob` that another run left, no larger than `max_bytes`.
std::optional<fs::path> left_part(const fs::path& blob, std::int64_t max_bytes) {
  std::optional<fs::path> best;
  std::uintmax_t best_size = 0;
  std::error_code error;
  const std::string start = blob.filename().string() + ".";
  for (fs::directory_iterator walk(blob.parent_path(), error); !error && walk != fs::directory_iterator();
       walk.increment(error)) {
    const std::string name = walk->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(kEnding)) continue;
    std::error_code ignored;
    // A link could lead the download over somebody's file.
    if (!fs::is_regular_file(fs::symlink_status(walk->path(), ignored))) continue;
    const auto size = fs::file_size(walk->path(), ignored);
    if (ignored || size <= best_size || size > static_cast<std::uintmax_t>(max_bytes)) continue;
    best = walk->path();
    best_size = size;
  }
  return best;
}

// Waits for nobody: who does not get the lock writes a file of its own from the start.
int take_lock(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

// Whoever writes a part holds a lock on it: without that a run that gets the blob's lock would take the part
// away from one that did not wait for it. True where the file system has no locks.
bool holds_part(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

// The part that an earlier run left, under a name of ours; -1 where there is none, or somebody writes it.
int take_over(const fs::path& left, const std::string& name) {
  const int fd = ::open(left.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::rename(left.c_str(), name.c_str()) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

}  // namespace

std::string part_name(const std::string& blob) {
  std::random_device random;
  return fmt::format("{}.{:08x}{}", blob, random(), kEnding);
}

Result<PartFile> PartFile::open(const std::string& blob, const std::string& lock, std::int64_t max_bytes) {
  PartFile part;
  part.lock_fd_ = take_lock(lock);
  part.path_ = part_name(blob);
  if (part.lock_fd_ >= 0)
    if (const auto left = left_part(blob, max_bytes)) part.fd_ = take_over(*left, part.path_);
  while (part.fd_ < 0) {
    part.fd_ = ::open(part.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (part.fd_ < 0) return cannot_write(part.path_);
    if (holds_part(part.fd_)) break;
    ::close(std::exchange(part.fd_, -1));  // taken over before it was ours: write another
    part.path_ = part_name(blob);
  }
  const off_t end = ::lseek(part.fd_, 0, SEEK_END);
  if (end < 0) return cannot_write(part.path_);
  part.size_ = end;
  return part;
}

PartFile::PartFile(PartFile&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      fd_(std::exchange(other.fd_, -1)),
      lock_fd_(std::exchange(other.lock_fd_, -1)),
      size_(other.size_) {}

PartFile& PartFile::operator=(PartFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(lock_fd_, other.lock_fd_);
  std::swap(size_, other.size_);
  return *this;
}

PartFile::~PartFile() {
  if (fd_ >= 0) ::close(fd_);
  if (fd_ >= 0 && size_ == 0) ::unlink(path_.c_str());  // nothing to go on from
  if (lock_fd_ >= 0) ::close(lock_fd_);
}

Status PartFile::append(std::string_view piece) {
  while (!piece.empty()) {
    const ssize_t put = ::write(fd_, piece.data(), piece.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cannot_write(path_);
    piece.remove_prefix(static_cast<std::size_t>(put));
    size_ += put;
  }
  return {};
}

Status PartFile::restart() {
  if (::ftruncate(fd_, 0) != 0 || ::lseek(fd_, 0, SEEK_SET) != 0) return cannot_write(path_);
  size_ = 0;
  return {};
}

Status PartFile::finish(const std::string& blob) {
  // A power cut may not leave a final name with holes behind it: large blobs that are here are believed.
  if (::fdatasync(fd_) != 0) return cannot_write(path_);
  if (::rename(path_.c_str(), blob.c_str()) != 0) return cannot_write(blob);
  ::close(std::exchange(fd_, -1));
  return {};
}

void PartFile::discard() {
  ::unlink(path_.c_str());
  ::close(std::exchange(fd_, -1));
}

}  // namespace plimsoll::artifact
