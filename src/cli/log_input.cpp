// SPDX-License-Identifier: Apache-2.0
#include "cli/log_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace plimsoll::cli {
namespace {

constexpr int kPauseMs = 200;  // between looks at a file that has not grown

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

int open_log(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (descriptor >= 0 && ::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    return -1;
  }
  return descriptor;
}

auto unreadable(const std::string& path) {
  return fail(ErrorCode::kMalformed, "the log cannot be read", path, "give a readable file, or - for stdin");
}

enum class Piece { kBytes, kEnd, kError };

Piece read_piece(int descriptor, verify::LogReader& reader) {
  std::array<char, std::size_t{64} * 1024> buffer;
  while (true) {
    const ::ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Piece::kError;
    if (count == 0) return Piece::kEnd;
    reader.feed({buffer.data(), static_cast<std::size_t>(count)});
    return Piece::kBytes;
  }
}

bool is_file(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

void rewind_if_cut(int descriptor) {
  struct stat status{};
  const ::off_t place = ::lseek(descriptor, 0, SEEK_CUR);
  if (::fstat(descriptor, &status) == 0 && status.st_size < place) ::lseek(descriptor, 0, SEEK_SET);
}

/// SIGINT and SIGTERM as a descriptor; until it goes they do not end the process.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
    descriptor_ = ::signalfd(-1, &set_, SFD_CLOEXEC);
  }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals() {
    if (descriptor_ >= 0) ::close(descriptor_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  /// False when one came. With `input` it waits for more of it, else for a moment.
  bool wait(int input) const {
    std::array<pollfd, 2> waited{pollfd{descriptor_, POLLIN, 0}, pollfd{input, POLLIN, 0}};
    ::poll(waited.data(), input >= 0 ? 2 : 1, input >= 0 ? -1 : kPauseMs);
    if ((waited[0].revents & POLLIN) == 0) return true;
    // Taken, or it would end the process once it is no longer blocked.
    signalfd_siginfo taken{};
    return ::read(descriptor_, &taken, sizeof taken) != sizeof taken;
  }

 private:
  sigset_t set_{}, before_{};
  int descriptor_ = -1;
};

}  // namespace

Result<verify::Log> read_log(const std::string& path) {
  const Descriptor log(open_log(path));
  if (log.get() < 0) return unreadable(path);
  verify::LogReader reader;
  Piece piece = Piece::kBytes;
  while (piece == Piece::kBytes) piece = read_piece(log.get(), reader);
  if (piece == Piece::kError) return unreadable(path);
  return reader.finish();
}

Result<verify::Log> follow_log(const std::string& path) {
  const Descriptor log(open_log(path));
  if (log.get() < 0) return unreadable(path);
  const bool grows = is_file(log.get());
  const Signals signals;
  verify::LogReader reader;
  while (signals.wait(grows ? -1 : log.get())) {
    if (grows) rewind_if_cut(log.get());
    Piece piece = Piece::kBytes;
    do piece = read_piece(log.get(), reader);
    while (grows && piece == Piece::kBytes);
    if (piece == Piece::kError) return unreadable(path);
    if (reader.has_settled() || (piece == Piece::kEnd && !grows)) break;
  }
  return reader.finish();
}

}  // namespace plimsoll::cli
