// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxPath = 512;
constexpr int kMaxDepth = 24;  // names of a hub have 16 parts at most

// Looked through inside a signal handler: lock-free, and never moved.
struct Watched {
  std::atomic<bool> is_taken = false, is_ready = false;
  std::array<char, kMaxPath> path{};
};
std::array<Watched, 16> table;  // models opened at once; a folder more is left behind by a signal

// What the kernel writes for getdents64.
struct Entry {
  std::uint64_t number;
  std::int64_t offset;
  std::uint16_t bytes;
  std::uint8_t kind;
  char name[];
};

// Empties and removes a folder. Only what a signal handler may call: no allocation, no streams.
void remove_tree(int parent, const char* name, int depth) {
  const int fd = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd >= 0 && depth < kMaxDepth) {
    alignas(Entry) std::array<char, 4096> buffer;
    for (long got = 0; (got = ::syscall(SYS_getdents64, fd, buffer.data(), buffer.size())) > 0;) {
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const Entry*>(buffer.data() + at);
        at += entry->bytes;
        if (std::strcmp(entry->name, ".") == 0 || std::strcmp(entry->name, "..") == 0) continue;
        if (::unlinkat(fd, entry->name, 0) != 0) remove_tree(fd, entry->name, depth + 1);
      }
    }
  }
  if (fd >= 0) ::close(fd);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

void on_end(int signal) {
  for (Watched& folder : table)
    if (folder.is_ready.load()) remove_tree(AT_FDCWD, folder.path.data(), 0);
  struct sigaction usual{};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::raise(signal);  // comes when this handler is left, and ends the process as it would have
}

// Where nobody has said what a signal means: a server that stops in order removes its folders in order.
void install_handlers() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction now{};
    if (::sigaction(signal, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
        now.sa_handler != SIG_DFL)
      continue;
    struct sigaction ours{};
    ours.sa_handler = on_end;
    ::sigaction(signal, &ours, nullptr);
  }
}

int watch(const std::string& path) {
  if (path.size() >= kMaxPath) return -1;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Watched& folder = table[i];
    if (folder.is_taken.load() || folder.is_taken.exchange(true)) continue;
    std::memcpy(folder.path.data(), path.c_str(), path.size() + 1);
    folder.is_ready.store(true);
    install_handlers();
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code error;
  std::string path = (fs::temp_directory_path(error) / "plimsoll-XXXXXX").string();
  if (error || !::mkdtemp(path.data()))
    return fail(
        ErrorCode::kUsage,
        std::string("no temporary folder can be made: ") + (error ? error.message() : std::strerror(errno)),
        path, "name a writable one with TMPDIR");
  TemporaryFolder folder;
  folder.watch_ = watch(path);
  folder.path_ = std::move(path);
  return folder;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), watch_(std::exchange(other.watch_, -1)) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(watch_, other.watch_);
  return *this;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  if (watch_ < 0) return;
  Watched& folder = table[static_cast<std::size_t>(watch_)];
  folder.is_ready.store(false);
  folder.is_taken.store(false);
}

}  // namespace plimsoll
