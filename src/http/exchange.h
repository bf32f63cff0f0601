// SPDX-License-Identifier: Apache-2.0
// One answer on its way from any thread to the server's thread. The handler's Responder writes finished bytes
// into an Exchange; the server's thread takes all that has gathered at once (this is where small events
// become few writes). An Exchange is shared by both sides and locks itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/http.h"

namespace plimsoll::http {

class Exchange;

/// How an Exchange tells the server's thread that it has news. Outlives the server: close() cuts the wire.
class Mailbox {
 public:
  explicit Mailbox(std::function<void()> wake) : wake_(std::move(wake)) {}
  void post(std::shared_ptr<Exchange> exchange);
  std::vector<std::shared_ptr<Exchange>> take();
  void close();

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> dirty_;
  std::function<void()> wake_;
};

class Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  struct Traits {
    std::uint64_t connection = 0;
    bool is_head_request = false;
    bool is_http_1_0 = false;
    bool keep_alive = true;
    std::size_t max_unsent_bytes = 0;
  };
  /// What the server's thread finds when it looks.
  struct Taken {
    std::string bytes;
    bool is_complete = false;             // nothing follows
    bool is_broken = false;               // to be cut: the peer left too much unread
    std::function<void()> on_disconnect;  // to be called now
    std::function<void()> unneeded;       // only to be destroyed, outside the lock: it may own a Responder
  };

  Exchange(Traits traits, std::shared_ptr<Mailbox> mailbox) : traits_(traits), mailbox_(std::move(mailbox)) {}

  // The handler's side; any thread.
  void send(Response response);
  void begin_stream(int status, Headers headers);
  void write(std::string_view chunk);
  void finish();
  void abandon();  // the Responder went away
  bool is_disconnected() const;
  void on_disconnect(std::function<void()> callback);

  // The server's side.
  Taken take();
  void sent(std::size_t bytes);  // bytes of an earlier take() left the socket
  /// The peer is gone: returns the callback to run, once.
  std::function<void()> disconnect();
  bool keep_alive() const;
  std::uint64_t connection() const { return traits_.connection; }

 private:
  enum class Phase { kWaiting, kStreaming, kComplete };
  void append_head(int status, const Headers& headers);
  void notify();

  const Traits traits_;
  const std::shared_ptr<Mailbox> mailbox_;
  mutable std::mutex mutex_;
  Phase phase_ = Phase::kWaiting;
  std::string pending_;
  std::size_t in_flight_bytes_ = 0;
  bool is_gone_ = false;
  bool is_broken_ = false;
  bool is_posted_ = false;
  bool must_notify_ = false;
  bool keep_alive_ = true;
  std::function<void()> callback_;
};

std::shared_ptr<Responder> make_responder(std::shared_ptr<Exchange> exchange);

/// "HTTP/1.1 404 Not Found\r\n" without anything after it.
std::string status_line(int status);

}  // namespace plimsoll::http
