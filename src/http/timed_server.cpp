// SPDX-License-Identifier: Apache-2.0
#include "http/timed_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "http/event_loop.h"
#include "http/receive.h"
#include "http/request_reader.h"

namespace plimsoll::http {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";

class TimedLoopback final : public TimedServer {
 public:
  TimedLoopback(std::unique_ptr<EventLoop> loop, TimetableOf timetable_of)
      : loop_(std::move(loop)), timetable_of_(std::move(timetable_of)), space_(std::size_t{1} << 20, '\0') {}
  ~TimedLoopback() override { stop(); }

  Status listen();
  int port() const override { return port_; }
  std::vector<TimedExchange> stop() override;

 private:
  struct Door final : EventLoop::Watcher {
    explicit Door(TimedLoopback& owner) : server(owner) {}
    void on_ready(std::uint32_t) override { server.has_callers_ = true; }
    TimedLoopback& server;
  };
  struct Bell final : EventLoop::Watcher {
    void on_ready(std::uint32_t) override {}
  };
  struct Peer final : EventLoop::Watcher {
    Peer(TimedLoopback& owner, int handle) : server(owner), socket(handle), reader(ReadLimits{}) {}
    void on_ready(std::uint32_t) override { server.ready_.push_back(this); }

    TimedLoopback& server;
    int socket;
    RequestReader reader;
    std::shared_ptr<const Timetable> timetable;
    std::size_t next_piece = 0;
    std::size_t exchange = 0;  // index into exchanges_
    std::optional<EventLoop::Timer> timer;
  };

  void run();
  void accept_all();
  void read(Peer& peer);
  void begin(Peer& peer, Clock::time_point arrived_at);
  void plan(Peer& peer);
  void write_piece(Peer& peer);
  void close(Peer& peer);

  std::unique_ptr<EventLoop> loop_;
  TimetableOf timetable_of_;
  std::string space_;
  int door_socket_ = -1;
  int bell_handle_ = -1;
  int port_ = 0;
  Door door_{*this};
  Bell bell_;
  bool has_callers_ = false;
  std::vector<Peer*> ready_;
  std::unordered_map<Peer*, std::unique_ptr<Peer>> peers_;
  std::vector<TimedExchange> exchanges_;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

Status TimedLoopback::listen() {
  door_socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  bell_handle_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (door_socket_ < 0 || bell_handle_ < 0 || ::bind(door_socket_, any, length) != 0 ||
      ::listen(door_socket_, SOMAXCONN) != 0 || ::getsockname(door_socket_, any, &length) != 0 ||
      !loop_->watch(door_socket_, door_, false) || !loop_->watch(bell_handle_, bell_, false))
    return fail(ErrorCode::kNetwork, "cannot listen on the loopback: " + std::string(std::strerror(errno)));
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { run(); });
  return {};
}

std::vector<TimedExchange> TimedLoopback::stop() {
  if (thread_.joinable()) {
    is_over_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto rung = ::write(bell_handle_, &one, sizeof one);
    thread_.join();
  }
  while (!peers_.empty()) close(*peers_.begin()->first);
  for (int* handle : {&door_socket_, &bell_handle_}) {
    if (*handle >= 0) ::close(*handle);
    *handle = -1;
  }
  return std::move(exchanges_);
}

void TimedLoopback::run() {
  while (!is_over_) {
    loop_->turn(true, [this] {
      if (std::exchange(has_callers_, false)) accept_all();
      for (Peer* peer : ready_) read(*peer);
      ready_.clear();
    });
  }
}

void TimedLoopback::accept_all() {
  for (;;) {
    const int socket = ::accept4(door_socket_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ask_for_stamps(socket);
    auto peer = std::make_unique<Peer>(*this, socket);
    loop_->watch(socket, *peer, false);
    peers_.emplace(peer.get(), std::move(peer));
  }
}

void TimedLoopback::read(Peer& peer) {
  while (const auto reading = receive(peer.socket, space_.data(), space_.size())) {
    if (reading->is_end) return close(peer);
    peer.reader.append(reading->bytes);
    const auto step = peer.reader.advance();
    if (step == RequestReader::Step::kRefused) return close(peer);
    if (step == RequestReader::Step::kComplete) begin(peer, reading->stamp(wall_to_steady()).at());
  }
}

void TimedLoopback::begin(Peer& peer, Clock::time_point arrived_at) {
  TimedExchange exchange;
  exchange.request_body = peer.reader.take().body;
  exchange.arrived_at = arrived_at;
  peer.timetable = timetable_of_(exchange.request_body);
  exchange.written_at.reserve(peer.timetable->size());
  peer.exchange = exchanges_.size();
  peer.next_piece = 0;
  exchanges_.push_back(std::move(exchange));
  plan(peer);
}

void TimedLoopback::plan(Peer& peer) {
  if (peer.next_piece == peer.timetable->size()) return;
  const auto due = exchanges_[peer.exchange].arrived_at + (*peer.timetable)[peer.next_piece].after;
  peer.timer = loop_->at(std::chrono::time_point_cast<Clock::duration>(due), [this, &peer] {
    peer.timer.reset();
    write_piece(peer);
  });
}

void TimedLoopback::write_piece(Peer& peer) {
  const std::string& piece = (*peer.timetable)[peer.next_piece].bytes;
  std::string out(peer.next_piece == 0 ? kHead : std::string_view());
  out += fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  if (++peer.next_piece == peer.timetable->size()) out += "0\r\n\r\n";
  exchanges_[peer.exchange].written_at.push_back(Clock::now());
  // A socket that takes less than this has a client that does not read: nothing to measure then.
  if (::send(peer.socket, out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()))
    return close(peer);
  plan(peer);
}

void TimedLoopback::close(Peer& peer) {
  if (peer.timer) loop_->cancel(*peer.timer);
  loop_->forget(peer.socket);
  ::close(peer.socket);
  peers_.erase(&peer);
}

}  // namespace

Result<std::unique_ptr<TimedServer>> TimedServer::start(TimetableOf timetable_of) {
  PLIMSOLL_TRY(auto loop, EventLoop::create());
  auto server = std::make_unique<TimedLoopback>(std::move(loop), std::move(timetable_of));
  PLIMSOLL_TRY_VOID(server->listen());
  return std::unique_ptr<TimedServer>(std::move(server));
}

}  // namespace plimsoll::http
