// SPDX-License-Identifier: Apache-2.0
#include "http/connection.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace plimsoll::http {
namespace {

void set_options(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ask_for_stamps(socket);
}

}  // namespace

Result<std::vector<Origin::Address>> look_up(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  // RFC 6761: this name means the loopback also where no hosts file says so (containers, bare roots).
  if (code != 0 && host == "localhost")
    code = ::getaddrinfo("127.0.0.1", std::to_string(port).c_str(), &hints, &found);
  if (code != 0)
    return fail(ErrorCode::kNetwork, "cannot look up the host " + host + ": " + ::gai_strerror(code), {},
                "check the spelling and the network");
  std::vector<Origin::Address> addresses;
  for (const addrinfo* at = found; at; at = at->ai_next) {
    Origin::Address address;
    address.family = at->ai_family;
    address.length = at->ai_addrlen;
    std::memcpy(&address.bytes, at->ai_addr, at->ai_addrlen);
    addresses.push_back(address);
  }
  ::freeaddrinfo(found);
  return addresses;
}

Connection::Connection(EventLoop& loop, EventLoop::Watcher& watcher, const Origin& origin)
    : loop_(loop), watcher_(watcher), origin_(origin) {
  connect_next("the name has no address");
}

Connection::~Connection() {
  if (socket_ < 0) return;
  if (tls_) {
    tls_->close();
    unsent_ += tls_->take_outgoing();
    flush();
  }
  loop_.forget(socket_);
  ::close(socket_);
}

void Connection::fail_with(std::string why) {
  state_ = State::kFailed;
  fault_ = std::move(why);
}

void Connection::drop(std::string why) {
  loop_.forget(socket_);
  fail_with(std::move(why));
}

void Connection::connect_next(std::string last_fault) {
  while (next_address_ < origin_.addresses.size()) {
    if (socket_ >= 0) {
      loop_.forget(socket_);
      ::close(socket_);
    }
    const Origin::Address& address = origin_.addresses[next_address_++];
    socket_ = ::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0) {
      last_fault = std::strerror(errno);
      continue;
    }
    set_options(socket_);
    const int result = ::connect(socket_, reinterpret_cast<const sockaddr*>(&address.bytes), address.length);
    if (result != 0 && errno != EINPROGRESS) {
      last_fault = std::strerror(errno);
      continue;
    }
    wants_write_ = result != 0;
    if (!loop_.watch(socket_, watcher_, wants_write_)) {
      last_fault = std::strerror(errno);
      continue;
    }
    if (result == 0) on_connected();
    return;
  }
  fail_with("cannot connect to " + origin_.url.host + ":" + std::to_string(origin_.url.port) + ": " +
            last_fault);
}

void Connection::on_writable() {
  if (state_ != State::kConnecting) return flush();
  int fault = 0;
  socklen_t length = sizeof fault;
  ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &fault, &length);
  if (fault != 0) return connect_next(std::strerror(fault));
  on_connected();
}

void Connection::on_connected() {
  if (!origin_.tls) {
    state_ = State::kOpen;
    return flush();
  }
  state_ = State::kHandshake;
  tls_ = std::make_unique<TlsSession>(*origin_.tls, origin_.url.host);
  advance_tls();
}

void Connection::advance_tls() {
  const Status advanced = tls_->advance();
  unsent_ += tls_->take_outgoing();
  flush();
  if (!advanced) return fail_with("TLS with " + origin_.url.host + " failed: " + advanced.error().message);
  if (state_ == State::kHandshake && tls_->is_established()) state_ = State::kOpen;
}

std::string_view Connection::plain(const Reading& reading) {
  if (!tls_) return reading.bytes;
  if (reading.is_end) {
    if (state_ == State::kHandshake) drop("TLS with " + origin_.url.host + " failed: the server hung up");
    return {};
  }
  decrypted_.clear();
  tls_->feed(reading.bytes);
  if (!tls_->is_established()) {
    advance_tls();
    if (state_ != State::kOpen) return {};
  }
  is_session_over_ = !tls_->read(decrypted_);
  unsent_ += tls_->take_outgoing();
  flush();
  return decrypted_;
}

void Connection::write(std::string bytes) {
  if (!tls_) {
    unsent_ = unsent_.empty() ? std::move(bytes) : unsent_ + bytes;
  } else {
    const Status written = tls_->write(bytes);
    unsent_ += tls_->take_outgoing();
    if (!written) return fail_with("TLS with " + origin_.url.host + " failed: " + written.error().message);
  }
  flush();
}

void Connection::flush() {
  while (sent_ < unsent_.size()) {
    const auto count = ::send(socket_, unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;  // full; or broken, which shows as the end of the read side
    sent_ += static_cast<std::size_t>(count);
  }
  const bool is_full = sent_ < unsent_.size() && (errno == EAGAIN || errno == EWOULDBLOCK);
  if (sent_ == unsent_.size()) {
    unsent_.clear();
    sent_ = 0;
  }
  if (is_full != wants_write_) loop_.change(socket_, watcher_, is_full);
  wants_write_ = is_full;
}

bool Connection::is_usable() const {
  if (is_session_over_) return false;
  char byte = 0;
  const auto peeked = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (peeked < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  return peeked > 0 && tls_;  // TLS 1.3 servers send session tickets after the handshake
}

}  // namespace plimsoll::http
