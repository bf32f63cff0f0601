// SPDX-License-Identifier: Apache-2.0
// A hub on the loopback for tests: answers each request with what a function says, one connection after the
// other, and keeps what was asked. Tests only; joins its thread when it ends.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "artifact/hub/settings.h"

namespace plimsoll::testing {

struct AskedRequest {
  std::string method, path, head;  // head: all header lines
  /// Value of a header; empty when it was not sent.
  std::string header(const std::string& name) const;
};

/// A whole answer: "HTTP/1.1 STATUS", the header lines given, Content-Length unless `headers` has one, the
/// body.
std::string http_answer(int status, const std::vector<std::string>& headers, const std::string& body);
/// The same answer, with its connection kept open for the next request.
std::string kept_open(std::string answer);

class ScriptedHub {
 public:
  using Script = std::function<std::string(const AskedRequest&)>;
  explicit ScriptedHub(Script script);
  ~ScriptedHub();
  ScriptedHub(const ScriptedHub&) = delete;
  ScriptedHub& operator=(const ScriptedHub&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// Settings that ask this hub, with an own cache folder and no long waits.
  artifact::HubSettings settings(const std::string& cache) const;
  std::vector<AskedRequest> requests() const;
  int num_connections() const { return num_connections_; }
  int count(const std::string& method, const std::string& part_of_path) const;

 private:
  void serve();
  bool answer(int connection);

  Script script_;
  int listener_ = -1, port_ = 0;
  mutable std::mutex mutex_;
  std::vector<AskedRequest> requests_;
  std::atomic<int> num_connections_ = 0, open_connection_ = -1;
  std::thread thread_;
};

/// A folder that is removed with the object.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

}  // namespace plimsoll::testing
