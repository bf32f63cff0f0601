// SPDX-License-Identifier: Apache-2.0
#include "loop/server_process.h"

#include <thread>

#include "base/mapped_file.h"

namespace plimsoll::loop {
namespace {

constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::string_view kReadyLine = "Listening on ";

// The address after "Listening on ", once the whole line is there.
std::string address_in(const std::string& log) {
  const std::size_t at = log.find(kReadyLine);
  if (at == std::string::npos) return {};
  const std::size_t end = log.find('\n', at);
  if (end == std::string::npos) return {};
  const std::size_t begin = at + kReadyLine.size();
  return log.substr(begin, log.find_first_of(" \r\n", begin) - begin);
}

std::string last_lines(const std::string& log, int count) {
  std::size_t at = log.size();
  for (int i = 0; i <= count && at != std::string::npos && at > 0; ++i) at = log.rfind('\n', at - 1);
  return at == std::string::npos || at == 0 ? log : log.substr(at + 1);
}

}  // namespace

Result<ServerProcess> start_server(const std::string& program, const std::string& model,
                                   const std::vector<std::string>& flags, const std::string& log_path,
                                   std::chrono::milliseconds patience) {
  std::vector<std::string> argv = {program, "serve", model, "--port", "0"};
  argv.insert(argv.end(), flags.begin(), flags.end());
  ServerProcess server;
  server.log_path = log_path;
  PLIMSOLL_TRY(server.process, Process::start(argv, log_path));
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const auto ended = server.process.exit_status();
    const auto log = read_file(log_path);
    if (log) server.url = address_in(*log);
    if (!ended && !server.url.empty()) return server;
    if (ended || std::chrono::steady_clock::now() > deadline)
      return fail(ErrorCode::kInternal,
                  (ended ? "the server ended with status " + std::to_string(*ended)
                         : std::string("the server did not become ready")) +
                      ":\n" + (log ? last_lines(*log, 3) : std::string()),
                  log_path, "");
    std::this_thread::sleep_for(kPollInterval);
  }
}

}  // namespace plimsoll::loop
