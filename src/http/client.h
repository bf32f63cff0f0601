// SPDX-License-Identifier: Apache-2.0
// Many requests at once, to one server or several, on the caller's thread: what a load client drives. Each
// piece of an answer comes with the time at which the kernel received it and the time at which it was read,
// both taken before anything is parsed. Connections are kept and used again; a request is sent twice
// only where a kept connection turns out to be closed (RFC 9112, 9.3.1). Not
// thread-safe: create, start and run on one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/http.h"

namespace plimsoll::http {

struct Outcome {
  enum class Kind { kComplete, kConnect, kTimeout, kEarlyClose, kMalformed };
  Kind kind = Kind::kComplete;
  std::string message;  // empty when complete
};

/// When bytes came. The kernel's stamp is of the last segment in the read (SO_TIMESTAMPING, software); it is
/// absent where the system gives none.
struct ReadStamp {
  using TimePoint = std::chrono::steady_clock::time_point;
  TimePoint read_at;                     // when this client had them
  std::optional<TimePoint> received_at;  // when the machine had them; never later than read_at
  TimePoint at() const { return received_at.value_or(read_at); }
};

/// Hears of one request. Must live until on_end, which comes exactly once and last. `at` is ReadStamp::at().
class ReplySink {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual ~ReplySink() = default;
  /// The connection stands and the request's bytes are about to be given to the kernel.
  virtual void on_connected(TimePoint) {}
  /// The request goes out once more, on a connection of its own: the server had closed the one it went to,
  /// which was kept from an earlier request, without a byte in answer.
  virtual void on_sent_again() {}
  /// One read of the socket; what it brought follows through on_head and on_body, if anything is whole.
  virtual void on_read(const ReadStamp&) {}
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
  std::size_t origin = 0;                                    // which of add()'s servers
};

struct ClientOptions {
  bool keep_alive = true;  // false: a connection for each request
  bool verify_tls = true;  // false: any certificate will do
};

class Client {
 public:
  /// Errors: kNetwork when the system gives no event loop.
  static Result<std::unique_ptr<Client>> create(const ClientOptions& options = {});
  virtual ~Client() = default;
  /// Looks a server's host up, once, and says which origin it is: 0, 1, ... Of `url` only scheme, host and
  /// port are used. Errors: kNetwork when the name cannot be resolved or TLS cannot be set up.
  virtual Result<std::size_t> add(const Url& url) = 0;
  /// Opens connections before they are needed; blocks until they stand, have failed, or `patience` is over.
  /// A failure is left for the request that needs the connection to tell.
  virtual void open_ahead(std::size_t origin, std::size_t connections,
                          std::chrono::milliseconds patience) = 0;
  /// Sends a request; on_end comes only through run(). Errors: kUsage for a header that holds a line break;
  /// nothing is sent then and the sink hears nothing.
  virtual Status start(Call call, ReplySink& sink) = 0;
  /// Runs `work` on the loop at `when`, at once if that is past.
  virtual void at(std::chrono::steady_clock::time_point when, std::function<void()> work) = 0;
  /// Blocks until no call and no timer is left.
  virtual void run() = 0;
  /// Ends every call under way as a time-out that says `why`.
  virtual void abandon(const std::string& why) = 0;
};

}  // namespace plimsoll::http
