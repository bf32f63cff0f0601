// SPDX-License-Identifier: Apache-2.0
// One connection of the load client: opens a socket, plain or TLS, writes what it is given and reads what has
// come. Knows no HTTP. Owned by the client; its socket is closed with it.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "http/client.h"
#include "http/event_loop.h"
#include "http/receive.h"
#include "http/tls_session.h"

namespace plimsoll::http {

/// A server: its addresses, in the order to try them.
struct Origin {
  struct Address {
    sockaddr_storage bytes{};
    socklen_t length = 0;
    int family = AF_UNSPEC;
  };
  Url url;
  std::vector<Address> addresses;
  std::shared_ptr<TlsClient> tls;  // null: plain
};

/// Every address of a host, in the resolver's order. Errors: kNetwork when the name is unknown.
Result<std::vector<Origin::Address>> look_up(const std::string& host, int port);

class Connection {
 public:
  enum class State { kConnecting, kHandshake, kOpen, kFailed };

  /// Starts to connect. `watcher` hears of the socket.
  Connection(EventLoop& loop, EventLoop::Watcher& watcher, const Origin& origin);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  State state() const { return state_; }
  /// Why it failed.
  const std::string& fault() const { return fault_; }

  /// The socket can be written: goes on with connecting, or with what is left to write.
  void on_writable();
  /// One read into `space`, without looking at it. Nothing when nothing has come.
  std::optional<Reading> read(char* space, std::size_t most) { return receive(socket_, space, most); }
  /// The plain bytes of `reading` (its own, or decrypted ones that live until the next call).
  std::string_view plain(const Reading& reading);
  /// Sends; what the socket does not take is kept and follows.
  void write(std::string bytes);
  /// What is left to read is told of in the next round.
  void look_again() { loop_.change(socket_, watcher_, wants_write_); }
  bool is_written() const { return unsent_.size() == sent_; }
  /// The peer has ended the TLS session, whose socket may stay open until we go: nothing more will come.
  bool is_session_over() const { return is_session_over_; }
  /// Hears no more of the socket, which counts as failed.
  void drop(std::string why);
  /// False when the server has closed an idle connection, or spoken out of turn.
  bool is_usable() const;

 private:
  void connect_next(std::string last_fault);
  void on_connected();
  void advance_tls();
  void flush();
  void fail_with(std::string why);

  EventLoop& loop_;
  EventLoop::Watcher& watcher_;
  const Origin& origin_;
  std::size_t next_address_ = 0;
  int socket_ = -1;
  State state_ = State::kConnecting;
  std::string fault_;
  std::string unsent_;
  std::size_t sent_ = 0;
  bool wants_write_ = false;
  std::unique_ptr<TlsSession> tls_;
  std::string decrypted_;
  bool is_session_over_ = false;
};

}  // namespace plimsoll::http
