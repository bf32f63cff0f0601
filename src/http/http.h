// SPDX-License-Identifier: Apache-2.0
// HTTP/1.1 as messages and event streams; knows no language model. A server on one event loop that holds
// thousands of streams, and a small blocking client. Asio, Beast and OpenSSL stay behind this header.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace plimsoll::http {

using Headers = std::vector<std::pair<std::string, std::string>>;
/// Value of a header, compared without case; empty when absent.
std::string_view header(const Headers& headers, std::string_view name);

struct Request {
  std::string method;  // GET
  std::string path;    // /v1/models, without the query
  std::string query;   // without '?'
  Headers headers;
  std::string body;
};

struct Response {
  int status = 200;
  Headers headers;  // Content-Length is added; Content-Type should be given
  std::string body;
};

/// Answers one request. All members may be called from any thread; calls after the peer is gone do nothing.
/// Exactly one of send() or begin_stream()..finish() is used; a Responder dropped unanswered sends a 500.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void send(Response response) = 0;
  /// Starts a chunked response (event streams).
  virtual void begin_stream(int status, Headers headers) = 0;
  virtual void write(std::string chunk) = 0;
  virtual void finish() = 0;
  /// True once the peer has closed; on_disconnect is called then, once, from the server's thread.
  virtual bool is_disconnected() const = 0;
  virtual void on_disconnect(std::function<void()> callback) = 0;
};

using Handler = std::function<void(Request request, std::shared_ptr<Responder> responder)>;

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;                                            // 0 picks a free one
  std::int64_t max_body_bytes = std::int64_t{32} << 20;    // larger bodies: 413
  std::int64_t max_header_bytes = std::int64_t{64} << 10;  // larger heads: 431
  std::chrono::seconds header_timeout{30};                 // a slow request head or body: connection closed
  int max_connections = 8192;
  std::chrono::seconds idle_timeout{75};                   // a kept-alive connection without a request
  std::chrono::seconds stall_timeout{120};                 // a peer that reads nothing of its answer
  std::int64_t max_unsent_bytes = std::int64_t{64} << 20;  // answer bytes a slow peer may leave here; then
                                                           // it counts as gone
  /// The body of an answer the server gives by itself (400, 408, 413, 431, 500); a plain sentence when empty.
  std::function<Response(int status, std::string_view reason)> refusal;
};

class Server {
 public:
  /// Binds and listens; nothing is accepted before run(). Malformed requests get 400 without reaching the
  /// handler. Errors: kNetwork when the port is in use or the address is wrong (naming both and what to do).
  static Result<std::unique_ptr<Server>> bind(const ServerOptions& options, Handler handler);
  virtual ~Server() = default;
  virtual int port() const = 0;
  /// Serves until stop(); blocks. The handler runs on this thread and must not block.
  virtual void run() = 0;
  /// From any thread: refuse new connections, let answers under way end for up to `drain`, then return from
  /// run().
  virtual void stop(std::chrono::milliseconds drain) = 0;
};

struct Url {
  bool is_tls = false;
  std::string host;
  int port = 80;
  std::string target;  // path and query, at least "/"
};
/// Errors: kUsage naming what is wrong.
Result<Url> parse_url(std::string_view text);

/// One blocking request. Errors: kNetwork (connect, timeout, early close, bad answer). An HTTP status >= 400
/// is no error.
Result<Response> fetch(std::string_view method, std::string_view url, std::string body,
                       const Headers& headers, std::chrono::milliseconds timeout, bool verify_tls = true);

}  // namespace plimsoll::http
