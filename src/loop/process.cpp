// SPDX-License-Identifier: Apache-2.0
#include "loop/process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

extern char** environ;

namespace plimsoll::loop {
namespace {

constexpr std::chrono::milliseconds kPollInterval{10};
constexpr int kLostStatus = 128 + SIGKILL;  // somebody else reaped the child: as good as killed

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

// "VmHWM:     1234 kB" -> bytes
std::optional<Bytes> kilobytes_of(const std::string& line, std::string_view key) {
  if (line.compare(0, key.size(), key) != 0) return std::nullopt;
  const std::size_t digits = line.find_first_of("0123456789", key.size());
  if (digits == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(line.data() + digits, line.data() + line.size(), value);
  return Bytes(value * kKiB);
}

}  // namespace

Result<Process> Process::start(const std::vector<std::string>& argv, const std::string& log_path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0644);
  std::vector<char*> pointers;
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  Process process;
  const int failed =
      ::posix_spawn(&process.pid_, argv.front().c_str(), &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    process.pid_ = -1;
    return fail(ErrorCode::kUsage, std::string("cannot start the program: ") + std::strerror(failed),
                argv.front() + ", log " + log_path, "check that both paths can be used");
  }
  return process;
}

Process::Process(Process&& other) noexcept {
  *this = std::move(other);
}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(status_, other.status_);
  return *this;
}

Process::~Process() {
  if (pid_ > 0) stop(std::chrono::seconds(5));
}

std::optional<int> Process::exit_status() {
  if (status_ || pid_ <= 0) return status_;
  int wait_status = 0;
  const pid_t changed = ::waitpid(pid_, &wait_status, WNOHANG);
  if (changed == pid_) status_ = status_of(wait_status);
  if (changed < 0 && errno == ECHILD) status_ = kLostStatus;
  return status_;
}

int Process::stop(std::chrono::milliseconds patience) {
  if (!exit_status()) ::kill(pid_, SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!exit_status() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(kPollInterval);
  if (!exit_status()) {
    ::kill(pid_, SIGKILL);
    int wait_status = 0;
    pid_t ended = -1;
    do ended = ::waitpid(pid_, &wait_status, 0);
    while (ended < 0 && errno == EINTR);
    status_ = ended == pid_ ? status_of(wait_status) : kLostStatus;
  }
  pid_ = -1;
  return *status_;
}

std::optional<Bytes> peak_memory(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (const auto peak = kilobytes_of(line, "VmHWM:")) return peak;
  return std::nullopt;
}

std::optional<Mapping> kv_pool_mapping(int pid) {
  std::ifstream smaps("/proc/" + std::to_string(pid) + "/smaps");
  std::optional<Mapping> found;
  Mapping current;
  for (std::string line; std::getline(smaps, line);) {
    if (const auto size = kilobytes_of(line, "Size:")) current.size = *size;
    if (const auto resident = kilobytes_of(line, "Rss:")) current.resident = *resident;
    if (line.compare(0, 8, "VmFlags:") != 0) continue;
    std::istringstream flags(line.substr(8));
    bool has_no_huge_pages = false, is_not_reserved = false, is_not_dumped = false;
    for (std::string flag; flags >> flag;) {
      has_no_huge_pages |= flag == "nh";
      is_not_reserved |= flag == "nr";
      is_not_dumped |= flag == "dd";
    }
    // A sanitizer's shadow memory has both flags too, and is kept out of core dumps besides.
    if (!has_no_huge_pages || !is_not_reserved || is_not_dumped) continue;
    if (found) return std::nullopt;
    found = current;
  }
  return found;
}

}  // namespace plimsoll::loop
