// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

#include "base/log.h"
#include "base/mapping_watch.h"

namespace plimsoll {
namespace {

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// Opens a regular file. O_NONBLOCK so that a named pipe in a model folder cannot hang us.
Result<struct stat> open_regular(const std::string& path, Descriptor& file) {
  file.fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0)
    return fail(ErrorCode::kMalformed, std::string("cannot open the file: ") + std::strerror(errno), path);
  struct stat status{};
  if (::fstat(file.fd, &status) != 0)
    return fail(ErrorCode::kMalformed, std::string("cannot read the file's size: ") + std::strerror(errno),
                path);
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::kMalformed, "expected a regular file, found something else", path);
  log_debug("reading " + path + ", " + std::to_string(status.st_size) + " bytes");
  return status;
}

// The first `size` bytes; less of a shorter file.
Result<std::size_t> read_first(int fd, char* to, std::size_t size, const std::string& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(fd, to + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(ErrorCode::kMalformed, std::string("cannot read the file: ") + std::strerror(errno), path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

tl::unexpected<Error> cannot_write(const char* what, const std::string& reason, const std::string& path) {
  return fail(ErrorCode::kUsage, std::string(what) + ": " + reason, path,
              "check that the folder exists and is writable");
}

// `shown` is the name that the caller knows.
Status write_bytes(int fd, std::string_view content, const std::string& shown) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cannot_write("cannot write the file", std::strerror(errno), shown);
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Status write_in_place(const std::string& path, std::string_view content, const std::string& shown) {
  Descriptor file;
  file.fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd < 0) return cannot_write("cannot open the file", std::strerror(errno), shown);
  return write_bytes(file.fd, content, shown);
}

// A file of its own name, which nobody can foresee and put a link in the place of; with the mode of the one
// that it will replace, if any.
Status write_new(const std::string& path, const struct stat* replaced, std::string_view content,
                 const std::string& shown) {
  Descriptor file;
  file.fd =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, replaced ? 0600 : 0644);
  if (file.fd < 0) return cannot_write("cannot create the file", std::strerror(errno), shown);
  if (replaced && ::fchmod(file.fd, replaced->st_mode & 07777) != 0)
    return cannot_write("cannot keep the file's mode", std::strerror(errno), shown);
  return write_bytes(file.fd, content, shown);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  return open_beginning(path, [](std::span<const std::byte>, std::size_t file_bytes) { return file_bytes; });
}

Result<MappedFile> MappedFile::open_beginning(const std::string& path, BytesWanted wanted) {
  Descriptor file;
  PLIMSOLL_TRY(const struct stat status, open_regular(path, file));
  MappedFile mapped;
  mapped.identity_ = {static_cast<std::size_t>(status.st_size), status.st_dev, status.st_ino,
                      status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  std::array<char, 8> first{};
  PLIMSOLL_TRY(const std::size_t num_first, read_first(file.fd, first.data(), first.size(), path));
  const std::size_t size = std::min(
      wanted(std::as_bytes(std::span(first).first(num_first)), mapped.file_bytes()), mapped.file_bytes());
  if (size == 0) return mapped;
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kMalformed, std::string("cannot map the file: ") + std::strerror(errno), path);
  mapped.data_ = static_cast<const std::byte*>(data);
  mapped.size_ = size;
  mapped.watch_ = watch_mapping(data, size);
  return mapped;
}

Result<MappedFile> MappedFile::open_whole(const std::string& path) const {
  PLIMSOLL_TRY(MappedFile whole, open(path));
  if (whole.identity_ != identity_)
    return fail(ErrorCode::kMalformed,
                "the file was changed, or another was put in its place, since it was opened", path,
                "start again when nothing writes to the model any more");
  return whole;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      identity_(other.identity_),
      watch_(std::exchange(other.watch_, -1)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(identity_, other.identity_);
  std::swap(watch_, other.watch_);
  return *this;
}

MappedFile::~MappedFile() {
  unwatch_mapping(watch_);
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

bool MappedFile::was_cut() const {
  return was_mapping_cut(watch_);
}

bool MappedFile::any_was_cut() {
  return was_any_mapping_cut();
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty() || part.data() < data_ || part.data() + part.size() > data_ + size_) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = static_cast<std::size_t>(part.data() - data_) / page * page;
  const std::size_t end = static_cast<std::size_t>(part.data() - data_) + part.size();
  // Nothing is lost: the mapping is of a file and never written. A refusal only leaves the pages where they
  // are.
  (void)::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Result<std::string> read_file(const std::string& path, std::int64_t max_bytes) {
  Descriptor file;
  PLIMSOLL_TRY(const struct stat status, open_regular(path, file));
  const auto size = static_cast<std::int64_t>(status.st_size);
  if (size > max_bytes)
    return fail(ErrorCode::kMalformed,
                "file has " + std::to_string(size) + " bytes, at most " + std::to_string(max_bytes) +
                    " are read here",
                path);
  constexpr std::size_t kSlack = 64;  // room that the JSON reader wants behind a text
  std::string content;
  content.reserve(static_cast<std::size_t>(size) + kSlack);
  content.resize(static_cast<std::size_t>(size));
  PLIMSOLL_TRY(const std::size_t done, read_first(file.fd, content.data(), content.size(), path));
  content.resize(done);
  return content;
}

Status write_file(const std::string& path, std::string_view content) {
  std::error_code unresolved;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, unresolved);
  if (unresolved) return cannot_write("cannot follow the path", unresolved.message(), path);
  struct stat status{};
  const bool is_there = ::stat(target.c_str(), &status) == 0;
  // A rename would put a file where a device or a pipe was.
  if (is_there && !S_ISREG(status.st_mode)) return write_in_place(target.string(), content, path);
  std::random_device random;
  const std::string temporary =
      target.string() + ".partial." + std::to_string(random()) + std::to_string(random());
  if (auto written = write_new(temporary, is_there ? &status : nullptr, content, path); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    ::unlink(temporary.c_str());
    return cannot_write("cannot put the file in place", reason, path);
  }
  return {};
}

}  // namespace plimsoll
