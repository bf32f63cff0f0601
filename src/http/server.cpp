// SPDX-License-Identifier: Apache-2.0
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <unordered_map>

#include "base/log.h"
#include "http/exchange.h"
#include "http/request_reader.h"

namespace plimsoll::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;

namespace {

// How much a pipelining peer may send ahead before its bytes stay in the kernel.
constexpr std::size_t kMaxAheadBytes = 256 * 1024;
// After a refusal the peer may still be sending its body: reading on for a while keeps the answer from being
// destroyed by a reset.
constexpr std::size_t kMaxDiscardedBytes = std::size_t{64} << 20;
constexpr std::chrono::seconds kLinger{2};
constexpr std::chrono::milliseconds kTick{200};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

struct Connection {
  Connection(std::uint64_t number, tcp::socket peer, const ReadLimits& limits)
      : id(number), socket(std::move(peer)), reader(limits) {}

  const std::uint64_t id;
  tcp::socket socket;
  RequestReader reader;
  std::shared_ptr<Exchange> exchange;  // the answer under way
  std::array<char, 16 * 1024> incoming;
  std::string outgoing;   // gathered while a write is under way
  std::string in_flight;  // being written
  std::size_t in_flight_sent = 0;
  std::size_t interim_unsent = 0;  // of `100 Continue`: goes out before, and not from, an Exchange
  std::size_t discarded = 0;
  Clock::time_point deadline = Clock::time_point::max();
  bool is_reading = false;
  bool is_writing = false;
  bool is_complete = false;   // the answer under way is whole; only its bytes are left to write
  bool closes_after = false;  // nothing more is read as a request
  bool is_lingering = false;  // write side shut, waiting for the peer's end
  bool is_closed = false;
  bool is_in_request = false;  // bytes of a request are here, its deadline is set
  bool is_in_body = false;
};
using ConnectionPtr = std::shared_ptr<Connection>;

class AsioServer final : public Server {
 public:
  AsioServer(ServerOptions options, Handler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        acceptor_(loop_),
        ticker_(loop_),
        mailbox_(std::make_shared<Mailbox>([this] { asio::post(loop_, [this] { read_mail(); }); })) {}

  ~AsioServer() override {
    mailbox_->close();
    is_stopping_ = true;
    close_all();
  }

  Status listen();
  int port() const override { return port_; }
  void run() override;
  void stop(std::chrono::milliseconds drain) override {
    asio::post(loop_, [this, drain] { begin_stop(drain); });
  }

 private:
  void accept();
  void accept_later();
  void tick();
  void begin_stop(std::chrono::milliseconds drain);
  void end_when_empty();
  void close_all();

  void read(const ConnectionPtr& c);
  void on_read(const ConnectionPtr& c, error_code error, std::size_t bytes);
  void advance(const ConnectionPtr& c);
  void answer(const ConnectionPtr& c);
  void refuse(const ConnectionPtr& c, int status, std::string_view reason);
  void read_mail();
  void deliver(const ConnectionPtr& c, Exchange::Taken taken);
  void write(const ConnectionPtr& c);
  void on_written(const ConnectionPtr& c, error_code error, std::size_t bytes);
  void end_answer(const ConnectionPtr& c);
  void linger(const ConnectionPtr& c);
  void close(const ConnectionPtr& c);

  const ServerOptions options_;
  const Handler handler_;
  asio::io_context loop_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer ticker_;
  std::shared_ptr<Mailbox> mailbox_;
  std::unordered_map<std::uint64_t, ConnectionPtr> connections_;
  std::uint64_t next_id_ = 1;
  int port_ = 0;
  bool is_accepting_ = false;
  bool is_stopping_ = false;
  Clock::time_point stop_deadline_ = Clock::time_point::max();
};

Status AsioServer::listen() {
  const std::string where = options_.host + ":" + std::to_string(options_.port);
  if (options_.port < 0 || options_.port > 65535)
    return fail(ErrorCode::kUsage, "cannot listen on " + where + ": a port is a number from 0 to 65535");
  error_code error;
  asio::ip::address address = asio::ip::make_address(options_.host, error);
  if (error) {
    auto found = tcp::resolver(loop_).resolve(options_.host, "", error);
    if (error && options_.host == "localhost")
      found = tcp::resolver(loop_).resolve("127.0.0.1", "", error);  // RFC 6761
    if (error || found.empty())
      return fail(ErrorCode::kNetwork, "cannot listen on " + where + ": no such address: " + error.message(),
                  "--host", "use an address of this machine, such as 127.0.0.1 or 0.0.0.0");
    address = found.begin()->endpoint().address();
  }
  const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(options_.port));
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use)
    return fail(ErrorCode::kNetwork, "cannot listen on " + where + ": the port is in use by another process",
                "--port", "stop that process, or choose another port (--port 0 picks a free one)");
  if (error)
    return fail(ErrorCode::kNetwork, "cannot listen on " + where + ": " + error.message(), "--host, --port",
                "use an address of this machine and a port above 1023");
  port_ = acceptor_.local_endpoint(error).port();
  return {};
}

void AsioServer::run() {
  accept();
  tick();
  for (;;) {
    try {
      loop_.run();
      return;
    } catch (const std::exception& error) {
      log_warning(std::string("http: ") + error.what());
    }
  }
}

void AsioServer::accept() {
  if (is_accepting_ || is_stopping_ || std::ssize(connections_) >= options_.max_connections) return;
  is_accepting_ = true;
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    is_accepting_ = false;
    if (is_stopping_) return;
    // Out of file descriptors: the listener stays readable, so trying at once would spin. The tick tries
    // again.
    if (error) return;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const ReadLimits limits{options_.max_header_bytes, options_.max_body_bytes};
    auto c = std::make_shared<Connection>(next_id_++, std::move(socket), limits);
    c->deadline = Clock::now() + options_.header_timeout;
    connections_.emplace(c->id, c);
    read(c);
    accept();
  });
}

void AsioServer::tick() {
  if (is_stopping_ && connections_.empty()) return;
  // Armed before the work: a callback that throws must not end all deadlines.
  ticker_.expires_after(kTick);
  ticker_.async_wait([this](error_code error) {
    if (!error) tick();
  });
  const auto now = Clock::now();
  std::vector<ConnectionPtr> late;
  for (const auto& [id, c] : connections_)
    if (c->deadline <= now) late.push_back(c);
  for (const auto& c : late) {
    if (c->is_in_request && !c->exchange && !c->is_lingering && !c->closes_after)
      refuse(c, 408,
             "the request did not arrive within " + std::to_string(options_.header_timeout.count()) +
                 " seconds");
    else
      close(c);
  }
  if (now >= stop_deadline_) close_all();
  accept();
}

void AsioServer::begin_stop(std::chrono::milliseconds drain) {
  is_stopping_ = true;
  stop_deadline_ = std::min(stop_deadline_, Clock::now() + drain);
  error_code ignored;
  acceptor_.close(ignored);
  std::vector<ConnectionPtr> idle;
  for (const auto& [id, c] : connections_)
    if (!c->exchange && !c->is_writing && !c->is_lingering) idle.push_back(c);
  for (const auto& c : idle) close(c);
  if (Clock::now() >= stop_deadline_) close_all();
  end_when_empty();
}

void AsioServer::end_when_empty() {
  if (is_stopping_ && connections_.empty()) ticker_.cancel();
}

void AsioServer::close_all() {
  std::vector<ConnectionPtr> all;
  for (const auto& [id, c] : connections_) all.push_back(c);
  for (const auto& c : all) close(c);
}

// The read side is always watched, also while an answer is computed or streamed: it is how a peer that closes
// is noticed at once.
void AsioServer::read(const ConnectionPtr& c) {
  if (c->is_reading || c->is_closed || c->reader.buffered_bytes() > kMaxAheadBytes) return;
  c->is_reading = true;
  c->socket.async_read_some(asio::buffer(c->incoming),
                            [this, c](error_code error, std::size_t bytes) { on_read(c, error, bytes); });
}

void AsioServer::on_read(const ConnectionPtr& c, error_code error, std::size_t bytes) {
  c->is_reading = false;
  if (c->is_closed) return;
  if (error) return close(c);
  if (c->is_lingering || c->closes_after) {
    c->discarded += bytes;
    if (c->discarded > kMaxDiscardedBytes) return close(c);
  } else {
    c->reader.append({c->incoming.data(), bytes});
    if (!c->exchange) advance(c);
  }
  read(c);
}

void AsioServer::advance(const ConnectionPtr& c) {
  switch (c->reader.advance()) {
    case RequestReader::Step::kComplete:
      return answer(c);
    case RequestReader::Step::kRefused:
      return refuse(c, c->reader.refusal_status(), c->reader.refusal_reason());
    case RequestReader::Step::kNeedMore:
      break;
  }
  const bool is_new = !c->is_in_request && c->reader.has_started();
  const bool is_new_body = !c->is_in_body && c->reader.head_complete();
  c->is_in_request = c->is_in_request || is_new;
  c->is_in_body = c->is_in_body || is_new_body;
  if (is_new || is_new_body) c->deadline = Clock::now() + options_.header_timeout;
  if (c->reader.take_wants_continue()) {
    c->outgoing += kContinue;
    c->interim_unsent += kContinue.size();
    write(c);
  }
}

void AsioServer::answer(const ConnectionPtr& c) {
  Request request = c->reader.take();
  Exchange::Traits traits;
  traits.connection = c->id;
  traits.is_head_request = request.method == "HEAD";
  traits.is_http_1_0 = c->reader.is_http_1_0();
  traits.keep_alive = c->reader.keep_alive() && !is_stopping_;
  traits.max_unsent_bytes = static_cast<std::size_t>(options_.max_unsent_bytes);
  c->exchange = std::make_shared<Exchange>(traits, mailbox_);
  c->is_complete = c->is_in_request = c->is_in_body = false;
  c->deadline = Clock::time_point::max();
  auto responder = make_responder(c->exchange);
  try {
    handler_(std::move(request), std::move(responder));
  } catch (const std::exception& error) {
    log_warning(std::string("http: the handler threw: ") + error.what());  // the dropped Responder sends 500
  }
}

void AsioServer::refuse(const ConnectionPtr& c, int status, std::string_view reason) {
  // First of all: when `refusal` throws, the next tick closes the connection instead of asking again.
  c->closes_after = true;
  c->is_in_request = false;
  Response response;
  if (options_.refusal) {
    response = options_.refusal(status, reason);
  } else {
    response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
    response.body = std::string(reason) + "\n";
  }
  response.status = status;
  Exchange::Traits traits;
  traits.connection = c->id;
  traits.keep_alive = false;
  traits.max_unsent_bytes = static_cast<std::size_t>(options_.max_unsent_bytes);
  c->exchange = std::make_shared<Exchange>(traits, mailbox_);
  c->deadline = Clock::time_point::max();
  c->exchange->send(std::move(response));
}

void AsioServer::read_mail() {
  for (const auto& exchange : mailbox_->take()) {
    Exchange::Taken taken = exchange->take();
    if (taken.on_disconnect) taken.on_disconnect();
    const auto found = connections_.find(exchange->connection());
    if (found == connections_.end() || found->second->exchange != exchange) continue;
    deliver(ConnectionPtr(found->second), std::move(taken));
  }
}

void AsioServer::deliver(const ConnectionPtr& c, Exchange::Taken taken) {
  if (taken.is_broken) return close(c);
  if (c->outgoing.empty())
    c->outgoing = std::move(taken.bytes);
  else
    c->outgoing += taken.bytes;
  c->is_complete = c->is_complete || taken.is_complete;
  write(c);
}

void AsioServer::write(const ConnectionPtr& c) {
  if (c->is_writing || c->is_closed) return;
  if (c->in_flight_sent == c->in_flight.size()) {
    c->in_flight.clear();
    c->in_flight_sent = 0;
    if (c->outgoing.empty()) {
      if (c->exchange) c->deadline = Clock::time_point::max();
      if (c->exchange && c->is_complete) end_answer(c);
      return;
    }
    c->in_flight.swap(c->outgoing);
  }
  c->is_writing = true;
  if (c->exchange) c->deadline = Clock::now() + options_.stall_timeout;
  c->socket.async_write_some(
      asio::buffer(c->in_flight.data() + c->in_flight_sent, c->in_flight.size() - c->in_flight_sent),
      [this, c](error_code error, std::size_t bytes) { on_written(c, error, bytes); });
}

void AsioServer::on_written(const ConnectionPtr& c, error_code error, std::size_t bytes) {
  c->is_writing = false;
  if (c->is_closed) return;
  if (error) return close(c);
  c->in_flight_sent += bytes;
  const std::size_t interim = std::min(bytes, c->interim_unsent);
  c->interim_unsent -= interim;
  if (c->exchange) c->exchange->sent(bytes - interim);
  write(c);
}

void AsioServer::end_answer(const ConnectionPtr& c) {
  const bool keep = c->exchange->keep_alive() && !is_stopping_ && !c->closes_after;
  c->exchange.reset();
  c->is_complete = false;
  // Unread bytes would turn the close into a reset that can destroy the answer on its way.
  if (!keep) return c->closes_after || c->reader.buffered_bytes() > 0 ? linger(c) : close(c);
  c->deadline = Clock::now() + options_.idle_timeout;
  advance(c);  // a pipelining peer's next request may be here already
  read(c);
}

void AsioServer::linger(const ConnectionPtr& c) {
  error_code ignored;
  c->socket.shutdown(tcp::socket::shutdown_send, ignored);
  c->is_lingering = true;
  c->deadline = Clock::now() + kLinger;
  read(c);
}

void AsioServer::close(const ConnectionPtr& c) {
  if (c->is_closed) return;
  c->is_closed = true;
  error_code ignored;
  c->socket.close(ignored);
  connections_.erase(c->id);
  if (auto exchange = std::move(c->exchange))
    if (auto callback = exchange->disconnect()) callback();
  accept();
  end_when_empty();
}

}  // namespace

Result<std::unique_ptr<Server>> Server::bind(const ServerOptions& options, Handler handler) {
  auto server = std::make_unique<AsioServer>(options, std::move(handler));
  PLIMSOLL_TRY_VOID(server->listen());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace plimsoll::http
