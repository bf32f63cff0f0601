// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <optional>

#include "base/log.h"
#include "http/response_reader.h"

namespace plimsoll::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

using TlsStream = asio::ssl::stream<tcp::socket&>;

/// One connection; plain, or TLS over the same socket.
struct Wire {
  explicit Wire(asio::io_context& loop) : socket(loop) {}
  tcp::socket socket;
  std::unique_ptr<TlsStream> tls;
  std::array<char, 32 * 1024> incoming;

  template <class Handler>
  void read_some(Handler handler) {
    if (tls)
      tls->async_read_some(asio::buffer(incoming), std::move(handler));
    else
      socket.async_read_some(asio::buffer(incoming), std::move(handler));
  }
  template <class Handler>
  void write_all(const std::string& bytes, Handler handler) {
    if (tls)
      asio::async_write(*tls, asio::buffer(bytes), std::move(handler));
    else
      asio::async_write(socket, asio::buffer(bytes), std::move(handler));
  }
  /// False when the server has closed an idle connection, or spoken out of turn.
  bool is_usable() {
    char byte = 0;
    const auto peeked = ::recv(socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (peeked < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    return peeked > 0 && tls;  // TLS 1.3 servers send session tickets after the handshake
  }
};

/// One request under way.
struct Flight final : ResponseReader::Sink {
  Flight(asio::io_context& loop, ReplySink& listener, bool is_head_request)
      : sink(listener), timer(loop), reader(is_head_request) {}

  ReplySink& sink;
  asio::steady_timer timer;
  ResponseReader reader;
  std::unique_ptr<Wire> wire;
  std::string outgoing;
  Clock::time_point read_at;
  bool is_done = false;
  bool is_written = false;

  void head(int status, const Headers& headers) override { sink.on_head(status, headers, read_at); }
  void body(std::string_view bytes) override { sink.on_body(bytes, read_at); }
};
using FlightPtr = std::shared_ptr<Flight>;

/// A line break would start another header. The value may be a key: no error shows it.
Status check_headers(const Headers& headers) {
  for (const auto& [name, value] : headers) {
    if (name.find_first_of("\r\n") != std::string::npos)
      return fail(ErrorCode::kUsage, "the name of a header holds a line break");
    if (value.find_first_of("\r\n") != std::string::npos)
      return fail(ErrorCode::kUsage, "the value of the header " + name + " holds a line break", {},
                  "take the line break out, also at the end of a key that was read from a file");
  }
  return {};
}

class AsioClient final : public Client {
 public:
  explicit AsioClient(Url url) : url_(std::move(url)) {}

  Status prepare();
  Status start(Call call, ReplySink& sink) override;
  void at(Clock::time_point when, std::function<void()> work) override;
  void run() override;

 private:
  std::string serialize(const Call& call) const;
  void connect(const FlightPtr& f);
  void handshake(const FlightPtr& f);
  void send(const FlightPtr& f);
  void read(const FlightPtr& f);
  void on_read(const FlightPtr& f, error_code error, std::size_t bytes);
  void end(const FlightPtr& f, Outcome::Kind kind, std::string message);

  const Url url_;
  asio::io_context loop_{1};
  std::optional<asio::ssl::context> tls_;
  tcp::resolver::results_type addresses_;
  std::vector<std::unique_ptr<Wire>> idle_;
};

Status AsioClient::prepare() {
  error_code error;
  const std::string port = std::to_string(url_.port);
  addresses_ = tcp::resolver(loop_).resolve(url_.host, port, error);
  // RFC 6761: this name means the loopback also where no hosts file says so (containers, bare roots).
  if (error && url_.host == "localhost") addresses_ = tcp::resolver(loop_).resolve("127.0.0.1", port, error);
  if (error)
    return fail(ErrorCode::kNetwork, "cannot look up the host " + url_.host + ": " + error.message(), {},
                "check the spelling and the network");
  if (url_.is_tls) {
    tls_.emplace(asio::ssl::context::tls_client);
    tls_->set_default_verify_paths(error);
    if (!error) tls_->set_verify_mode(asio::ssl::verify_peer, error);
    if (error) return fail(ErrorCode::kNetwork, "cannot set up TLS: " + error.message());
  }
  return {};
}

std::string AsioClient::serialize(const Call& call) const {
  const bool is_default_port = url_.port == (url_.is_tls ? 443 : 80);
  const bool is_ipv6 = url_.host.find(':') != std::string::npos;
  std::string out = call.method + " " + call.target + " HTTP/1.1\r\nHost: ";
  out += is_ipv6 ? "[" + url_.host + "]" : url_.host;
  if (!is_default_port) out += ":" + std::to_string(url_.port);
  out += "\r\n";
  for (const auto& [name, value] : call.headers) out += name + ": " + value + "\r\n";
  if (!call.body.empty() || call.method == "POST")
    out += "Content-Length: " + std::to_string(call.body.size()) + "\r\n";
  return out + "\r\n" + call.body;
}

Status AsioClient::start(Call call, ReplySink& sink) {
  PLIMSOLL_TRY_VOID(check_headers(call.headers));
  auto f = std::make_shared<Flight>(loop_, sink, call.method == "HEAD");
  f->outgoing = serialize(call);
  f->timer.expires_after(call.timeout);
  f->timer.async_wait([this, f](error_code error) {
    if (!error) end(f, Outcome::Kind::kTimeout, "no complete answer within the time limit");
  });
  while (!idle_.empty()) {
    f->wire = std::move(idle_.back());
    idle_.pop_back();
    if (f->wire->is_usable()) {
      send(f);
      return {};
    }
    f->wire.reset();
  }
  connect(f);
  return {};
}

void AsioClient::at(Clock::time_point when, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(loop_, when);
  timer->async_wait([timer, work = std::move(work)](error_code error) {
    if (!error) work();
  });
}

void AsioClient::run() {
  for (;;) {
    try {
      loop_.restart();
      loop_.run();
      return;
    } catch (const std::exception& error) {
      log_warning(std::string("http client: ") + error.what());
    }
  }
}

void AsioClient::connect(const FlightPtr& f) {
  f->wire = std::make_unique<Wire>(loop_);
  asio::async_connect(f->wire->socket, addresses_, [this, f](error_code error, const tcp::endpoint&) {
    if (f->is_done) return;
    if (error)
      return end(f, Outcome::Kind::kConnect,
                 "cannot connect to " + url_.host + ":" + std::to_string(url_.port) + ": " + error.message());
    error_code ignored;
    f->wire->socket.set_option(tcp::no_delay(true), ignored);
    if (tls_) return handshake(f);
    send(f);
  });
}

void AsioClient::handshake(const FlightPtr& f) {
  f->wire->tls = std::make_unique<TlsStream>(f->wire->socket, *tls_);
  error_code ignored;
  f->wire->tls->set_verify_callback(asio::ssl::host_name_verification(url_.host), ignored);
  SSL_set_tlsext_host_name(f->wire->tls->native_handle(), url_.host.c_str());
  f->wire->tls->async_handshake(asio::ssl::stream_base::client, [this, f](error_code error) {
    if (f->is_done) return;
    if (error)
      return end(f, Outcome::Kind::kConnect, "TLS with " + url_.host + " failed: " + error.message());
    send(f);
  });
}

void AsioClient::send(const FlightPtr& f) {
  // Reading starts at once: a server may answer (413) before it has read the whole body.
  read(f);
  f->wire->write_all(f->outgoing, [f](error_code error, std::size_t) {
    // A failed write shows as the end of the read side, which may still hold an answer.
    if (!error) f->is_written = true;
  });
}

void AsioClient::read(const FlightPtr& f) {
  f->wire->read_some([this, f](error_code error, std::size_t bytes) { on_read(f, error, bytes); });
}

void AsioClient::on_read(const FlightPtr& f, error_code error, std::size_t bytes) {
  if (f->is_done) return;
  f->read_at = Clock::now();
  if (error) {
    if (f->reader.end_of_input() == ResponseReader::Step::kComplete)
      return end(f, Outcome::Kind::kComplete, {});
    return end(f, Outcome::Kind::kEarlyClose, f->reader.fault() + " (" + error.message() + ")");
  }
  std::size_t used = 0;
  switch (f->reader.feed({f->wire->incoming.data(), bytes}, *f, used)) {
    case ResponseReader::Step::kNeedMore:
      return read(f);
    case ResponseReader::Step::kMalformed:
      return end(f, Outcome::Kind::kMalformed, f->reader.fault());
    case ResponseReader::Step::kComplete:
      if (f->reader.keep_alive() && used == bytes && f->is_written) idle_.push_back(std::move(f->wire));
      return end(f, Outcome::Kind::kComplete, {});
  }
}

void AsioClient::end(const FlightPtr& f, Outcome::Kind kind, std::string message) {
  if (f->is_done) return;
  f->is_done = true;
  f->timer.cancel();
  if (f->wire) {
    error_code ignored;
    f->wire->socket.close(ignored);  // ends the operations that still use it; the Flight owns it till then
  }
  f->sink.on_end(
      Outcome{kind, std::move(message)},
      kind == Outcome::Kind::kTimeout || kind == Outcome::Kind::kConnect ? Clock::now() : f->read_at);
}

}  // namespace

Result<std::unique_ptr<Client>> Client::create(const Url& url) {
  auto client = std::make_unique<AsioClient>(url);
  PLIMSOLL_TRY_VOID(client->prepare());
  return std::unique_ptr<Client>(std::move(client));
}

}  // namespace plimsoll::http
