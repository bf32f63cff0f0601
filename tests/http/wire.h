// SPDX-License-Identifier: Apache-2.0
// Raw sockets for tests: bytes out, bytes in, no HTTP library between; and a server that runs on its own
// thread.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "http/http.h"

namespace plimsoll::http {

/// Binds port 0, serves until it goes out of scope.
class RunningServer {
 public:
  explicit RunningServer(Handler handler, ServerOptions options = {}) {
    options.port = 0;
    auto bound = Server::bind(options, std::move(handler));
    EXPECT_TRUE(bound) << (bound ? "" : bound.error().describe());
    server_ = std::move(*bound);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~RunningServer() { stop(std::chrono::milliseconds(0)); }
  void stop(std::chrono::milliseconds drain) {
    server_->stop(drain);
    join();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  Server& server() { return *server_; }
  int port() const { return server_->port(); }
  std::string url(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(port()) + std::string(path);
  }

 private:
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

/// A blocking loopback connection; every read gives up after 20 s so that a fault fails instead of hanging.
class Wire {
 public:
  explicit Wire(int port) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval limit{20, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_open_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~Wire() { close(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  bool is_open() const { return is_open_; }
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// Reads until `mark` has been seen `count` times, or the peer ends.
  std::string read_until(std::string_view mark, int count = 1) {
    while (occurrences(mark) < count && read_more()) {
    }
    return seen_;
  }
  std::string read_to_end() {
    while (read_more()) {
    }
    return seen_;
  }
  bool at_end() const { return at_end_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int occurrences(std::string_view mark) const {
    int found = 0;
    for (std::size_t at = seen_.find(mark); at != seen_.npos; at = seen_.find(mark, at + mark.size()))
      ++found;
    return found;
  }
  bool read_more() {
    char buffer[4096];
    const auto n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) {
      at_end_ = n == 0;
      return false;
    }
    seen_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  int fd_ = -1;
  bool is_open_ = false;
  bool at_end_ = false;
  std::string seen_;
};

/// A value one thread sets and another waits for, 20 s at most.
template <class T>
class Awaited {
 public:
  void set(T value) {
    const std::lock_guard lock(mutex_);
    value_ = std::move(value);
    is_set_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return is_set_; });
  }
  T get() {
    EXPECT_TRUE(wait());
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_set_ = false;
  T value_{};
};

}  // namespace plimsoll::http
