// SPDX-License-Identifier: Apache-2.0
// Our own engine as a process of its own: `plimsoll serve` on a free port, ready or failed, with its log in a
// file.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/process.h"

namespace plimsoll::loop {

struct ServerProcess {
  Process process;
  std::string url;       // http://127.0.0.1:PORT
  std::string log_path;  // its stderr
};

/// Runs `program serve MODEL --port 0 FLAGS...` and waits until it listens.
/// Errors: kInternal with the last lines of the log when it ends or stays silent for `patience`.
Result<ServerProcess> start_server(const std::string& program, const std::string& model,
                                   const std::vector<std::string>& flags, const std::string& log_path,
                                   std::chrono::milliseconds patience);

}  // namespace plimsoll::loop
