// SPDX-License-Identifier: Apache-2.0
// A program run beside us: started with its stderr in a file, watched through /proc, ended with a signal.
// A Process owns its child: it is ended (SIGTERM, then SIGKILL) when the object goes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace plimsoll::loop {

class Process {
 public:
  /// Starts argv[0] with the rest as arguments; stdout is discarded, stderr goes to `log_path`.
  /// Errors: kUsage when the log cannot be created or the program cannot be started.
  static Result<Process> start(const std::vector<std::string>& argv, const std::string& log_path);

  Process() = default;
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  int pid() const { return pid_; }
  /// Exit status once the program has ended (128 + signal when one ended it), nothing while it runs.
  std::optional<int> exit_status();
  /// Asks it to end, waits up to `patience`, then kills it. Returns its exit status.
  int stop(std::chrono::milliseconds patience);

 private:
  int pid_ = -1;
  std::optional<int> status_;
};

/// Most memory the process has held at once (VmHWM). Nothing when the system does not say.
std::optional<Bytes> peak_memory(int pid);

/// One anonymous mapping as the kernel counts it.
struct Mapping {
  Bytes size;      // reserved address space
  Bytes resident;  // pages that hold memory
};
/// The mapping that a process has both excluded from huge pages and from swap reservation (flags "nh" and
/// "nr" in smaps): our engine makes its KV pool so, and only that. Nothing when there is none or more than
/// one.
std::optional<Mapping> kv_pool_mapping(int pid);

}  // namespace plimsoll::loop
