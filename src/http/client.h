// SPDX-License-Identifier: Apache-2.0
// Many requests to one endpoint at once, on the caller's thread: what a load client drives. Each piece of an
// answer comes with the time at which it was read from the socket, before anything is parsed. Connections are
// kept and used again; nothing is ever sent twice. Not thread-safe: create, start and run on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http/http.h"

namespace plimsoll::http {

struct Outcome {
  enum class Kind { kComplete, kConnect, kTimeout, kEarlyClose, kMalformed };
  Kind kind = Kind::kComplete;
  std::string message;  // empty when complete
};

/// Hears of one request. Must live until on_end, which comes exactly once and last.
class ReplySink {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual ~ReplySink() = default;
  virtual void on_head(int status, const Headers& headers, TimePoint at) = 0;
  virtual void on_body(std::string_view bytes, TimePoint at) = 0;
  virtual void on_end(const Outcome& outcome, TimePoint at) = 0;
};

struct Call {
  std::string method;
  std::string target;  // path and query
  Headers headers;     // Host and Content-Length are added
  std::string body;
  std::chrono::milliseconds timeout{std::chrono::hours(6)};  // of the whole exchange
};

class Client {
 public:
  /// Looks the host up once; connections are opened as calls need them.
  /// Errors: kNetwork when the name cannot be resolved or TLS cannot be set up.
  static Result<std::unique_ptr<Client>> create(const Url& url);
  virtual ~Client() = default;
  /// Sends a request; on_end may come before start returns only through run().
  /// Errors: kUsage for a header that holds a line break; nothing is sent then and the sink hears nothing.
  virtual Status start(Call call, ReplySink& sink) = 0;
  /// Runs `work` on the loop at `when`, at once if that is past.
  virtual void at(std::chrono::steady_clock::time_point when, std::function<void()> work) = 0;
  /// Blocks until no call and no timer is left.
  virtual void run() = 0;
};

}  // namespace plimsoll::http
