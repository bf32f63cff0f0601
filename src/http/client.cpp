// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <unordered_map>

#include "http/connection.h"
#include "http/event_loop.h"
#include "http/request_text.h"
#include "http/response_reader.h"

namespace plimsoll::http {
namespace {

using Clock = std::chrono::steady_clock;

// What one read may bring, and what one round of reads may: beyond it, sockets wait for the next round.
constexpr std::size_t kReadBytes = 64 * 1024;
constexpr std::size_t kRoundBytes = 1024 * 1024;

/// One request under way.
struct Flight final : ResponseReader::Sink {
  Flight(ReplySink& listener, bool is_head_request) : sink(listener), reader(is_head_request) {}

  ReplySink& sink;
  ResponseReader reader;
  std::string request;  // until the connection stands
  std::string copy;     // of what went out on a kept connection, until anything comes back
  Clock::time_point deadline;
  std::optional<EventLoop::Timer> timer;
  Clock::time_point last_at;

  void head(int status, const Headers& headers) override { sink.on_head(status, headers, last_at); }
  void body(std::string_view bytes) override { sink.on_body(bytes, last_at); }
};

class EpollClient final : public Client {
 public:
  EpollClient(std::unique_ptr<EventLoop> loop, const ClientOptions& options)
      : options_(options), loop_(std::move(loop)), space_(kRoundBytes, '\0') {}

  Result<std::size_t> add(const Url& url) override;
  void open_ahead(std::size_t origin, std::size_t connections, std::chrono::milliseconds patience) override;
  Status start(Call call, ReplySink& sink) override;
  void at(Clock::time_point when, std::function<void()> work) override { loop_->at(when, std::move(work)); }
  void abandon(const std::string& why) override;
  void run() override {
    while (loop_->turn(num_flights_ > 0, [this] { work_off(); })) {
    }
  }

 private:
  /// A connection and the request on it, if there is one.
  struct Line final : EventLoop::Watcher {
    Line(EpollClient& owner, std::size_t at)
        : client(owner), origin(at), connection(*owner.loop_, *this, owner.origins_[at]) {}
    void on_ready(std::uint32_t events) override { client.on_ready(*this, events); }

    EpollClient& client;
    std::size_t origin;
    Connection connection;
    std::unique_ptr<Flight> flight;
    std::optional<EventLoop::Timer> soon;  // goes on with what failed at once
    std::int64_t num_calls = 0;
    bool is_closed = false;  // buried at the end of the round
  };
  struct Ready {
    Line* line;
    std::optional<Reading> reading;  // else it can be written
  };

  Line& open(std::size_t origin);
  Line* take_idle(std::size_t origin);
  void on_ready(Line& line, std::uint32_t events);
  void read(Line& line, bool is_ending);
  void work_off();
  void on_writable(Line& line);
  void on_reading(Line& line, const Reading& reading, std::chrono::nanoseconds to_steady);
  void end_of_input(Line& line, int fault);
  void board(Line& line, std::unique_ptr<Flight> flight);
  void send_again(Line& line);
  void go_on(Line& line);
  void send(Line& line);
  void feed(Line& line, std::string_view bytes);
  void end(Line& line, Outcome::Kind kind, std::string message, Clock::time_point at);
  void close(Line& line);

  const ClientOptions options_;
  std::unique_ptr<EventLoop> loop_;
  std::deque<Origin> origins_;  // connections refer to them
  std::unordered_map<Line*, std::unique_ptr<Line>> lines_;
  std::vector<std::vector<Line*>> idle_;  // by origin
  std::vector<std::unique_ptr<Line>> buried_;
  std::vector<Ready> ready_;  // of this round
  std::string space_;         // what this round has read
  std::size_t used_ = 0;
  std::size_t num_flights_ = 0;
};

Result<std::size_t> EpollClient::add(const Url& url) {
  Origin origin;
  origin.url = url;
  PLIMSOLL_TRY(origin.addresses, look_up(url.host, url.port));
  if (url.is_tls) {
    PLIMSOLL_TRY(origin.tls, TlsClient::create(options_.verify_tls));
  }
  origins_.push_back(std::move(origin));
  idle_.emplace_back();
  return origins_.size() - 1;
}

EpollClient::Line& EpollClient::open(std::size_t origin) {
  auto line = std::make_unique<Line>(*this, origin);
  Line& opened = *line;
  lines_.emplace(&opened, std::move(line));
  return opened;
}

void EpollClient::open_ahead(std::size_t origin, std::size_t connections,
                             std::chrono::milliseconds patience) {
  std::vector<Line*> opened;
  for (std::size_t i = 0; i < connections; ++i) opened.push_back(&open(origin));
  bool is_over = false;
  const auto timer = loop_->at(Clock::now() + patience, [&is_over] { is_over = true; });
  const auto is_pending = [](const Line* line) {
    return line->connection.state() == Connection::State::kConnecting ||
           line->connection.state() == Connection::State::kHandshake;
  };
  while (!is_over && std::any_of(opened.begin(), opened.end(), is_pending)) {
    // Lines that fail or are closed meanwhile must stay where `opened` points: they are buried below.
    loop_->turn(true, [this] {
      for (const Ready& ready : ready_) {
        Connection& connection = ready.line->connection;
        if (!ready.reading)
          connection.on_writable();
        else if (ready.reading->is_end)
          connection.drop("the server hung up");
        else
          connection.plain(*ready.reading);
      }
      ready_.clear();
      used_ = 0;
    });
  }
  if (!is_over) loop_->cancel(timer);
  for (Line* line : opened) {
    if (line->connection.state() == Connection::State::kOpen)
      idle_[origin].push_back(line);
    else
      close(*line);
  }
  buried_.clear();
}

EpollClient::Line* EpollClient::take_idle(std::size_t origin) {
  auto& idle = idle_[origin];
  while (!idle.empty()) {
    Line* line = idle.back();
    idle.pop_back();
    if (line->connection.is_usable()) return line;
    close(*line);
  }
  return nullptr;
}

Status EpollClient::start(Call call, ReplySink& sink) {
  PLIMSOLL_CHECK(call.origin < origins_.size(), "a call to a server that was not added");
  auto flight = std::make_unique<Flight>(sink, call.method == "HEAD");
  PLIMSOLL_TRY(flight->request, request_text(origins_[call.origin].url, call, options_.keep_alive));
  Line* line = take_idle(call.origin);
  if (!line) line = &open(call.origin);
  flight->last_at = Clock::now();
  flight->deadline = flight->last_at + call.timeout;
  board(*line, std::move(flight));
  ++num_flights_;
  if (line->connection.state() == Connection::State::kOpen) send(*line);
  // The caller hears of a failure only after start has returned.
  if (line->connection.state() == Connection::State::kFailed)
    line->soon = loop_->at(Clock::now(), [this, line] {
      line->soon.reset();
      go_on(*line);
    });
  return {};
}

void EpollClient::abandon(const std::string& why) {
  std::vector<Line*> busy;
  for (const auto& [line, owner] : lines_)
    if (line->flight) busy.push_back(line);
  for (Line* line : busy) end(*line, Outcome::Kind::kTimeout, why, Clock::now());
}

void EpollClient::on_ready(Line& line, std::uint32_t events) {
  if (line.is_closed) return;
  if (line.connection.state() == Connection::State::kConnecting) {
    ready_.push_back({&line, std::nullopt});
    return;
  }
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0)
    read(line, (events & ~std::uint32_t{EPOLLIN | EPOLLOUT}) != 0);
  if ((events & EPOLLOUT) != 0) ready_.push_back({&line, std::nullopt});
}

/// `is_ending`: the peer has hung up, which shows behind its last bytes.
void EpollClient::read(Line& line, bool is_ending) {
  if (used_ + kReadBytes > space_.size()) return line.connection.look_again();
  auto reading = line.connection.read(space_.data() + used_, kReadBytes);
  if (!reading) return;
  const std::size_t bytes = reading->bytes.size();
  used_ += bytes;
  // Less than asked for is all there was.
  if (bytes == kReadBytes || (is_ending && !reading->is_end)) line.connection.look_again();
  ready_.push_back({&line, std::move(reading)});
}

void EpollClient::work_off() {
  if (!ready_.empty()) {
    const auto to_steady = wall_to_steady();
    for (const Ready& ready : ready_) {
      if (ready.line->is_closed) continue;
      if (ready.reading)
        on_reading(*ready.line, *ready.reading, to_steady);
      else
        on_writable(*ready.line);
    }
    ready_.clear();
    used_ = 0;
  }
  buried_.clear();
}

void EpollClient::on_writable(Line& line) {
  line.connection.on_writable();
  go_on(line);
}

/// The connection's state may have changed: sends a request that waited for it, or tells that it failed.
void EpollClient::go_on(Line& line) {
  if (line.is_closed || !line.flight) return;
  if (line.connection.state() == Connection::State::kOpen) {
    if (!line.flight->request.empty()) send(line);
  } else if (line.connection.state() == Connection::State::kFailed) {
    end(line, Outcome::Kind::kConnect, line.connection.fault(), Clock::now());
  }
}

void EpollClient::send(Line& line) {
  Flight& flight = *line.flight;
  flight.last_at = Clock::now();
  flight.sink.on_connected(flight.last_at);
  if (line.num_calls > 1) flight.copy = flight.request;
  line.connection.write(std::exchange(flight.request, {}));
}

/// Puts a request on a connection.
void EpollClient::board(Line& line, std::unique_ptr<Flight> flight) {
  flight->timer = loop_->at(flight->deadline, [this, &line] {
    line.flight->timer.reset();
    end(line, Outcome::Kind::kTimeout, "no complete answer within the time limit", Clock::now());
  });
  line.flight = std::move(flight);
  ++line.num_calls;
}

/// The server closed a kept connection just when it was used again.
void EpollClient::send_again(Line& line) {
  auto flight = std::move(line.flight);
  loop_->cancel(*flight->timer);
  flight->request = std::exchange(flight->copy, {});
  close(line);
  flight->sink.on_sent_again();
  Line& fresh = open(line.origin);
  board(fresh, std::move(flight));
  go_on(fresh);
}

void EpollClient::on_reading(Line& line, const Reading& reading, std::chrono::nanoseconds to_steady) {
  const std::string_view bytes = line.connection.plain(reading);
  const bool is_end = reading.is_end || line.connection.is_session_over();
  // Without a request: the server closes an idle connection, sends a session ticket, or speaks out of turn.
  const bool has_spoken_unasked = !line.flight && !bytes.empty();
  if (line.flight) {
    go_on(line);
    if (line.is_closed || !line.flight->request.empty()) return;
    const ReadStamp stamp = reading.stamp(to_steady, line.flight->last_at);
    line.flight->last_at = stamp.at();
    if (!reading.is_end) {
      if (!bytes.empty()) line.flight->copy.clear();
      line.flight->sink.on_read(stamp);
      feed(line, bytes);
    }
  }
  if (line.is_closed) return;
  if (!line.flight) {
    if (is_end || has_spoken_unasked) close(line);
  } else if (is_end) {
    end_of_input(line, reading.fault);
  }
}

void EpollClient::end_of_input(Line& line, int fault) {
  Flight& flight = *line.flight;
  if (!flight.copy.empty()) return send_again(line);
  if (flight.reader.end_of_input() == ResponseReader::Step::kComplete)
    return end(line, Outcome::Kind::kComplete, {}, flight.last_at);
  const std::string cause = fault != 0 ? std::strerror(fault) : "End of file";
  end(line, Outcome::Kind::kEarlyClose, flight.reader.fault() + " (" + cause + ")", flight.last_at);
}

void EpollClient::feed(Line& line, std::string_view bytes) {
  Flight& flight = *line.flight;
  std::size_t used = 0;
  switch (flight.reader.feed(bytes, flight, used)) {
    case ResponseReader::Step::kNeedMore:
      return;
    case ResponseReader::Step::kMalformed:
      return end(line, Outcome::Kind::kMalformed, flight.reader.fault(), flight.last_at);
    case ResponseReader::Step::kComplete: {
      const bool is_reusable = options_.keep_alive && flight.reader.keep_alive() && used == bytes.size() &&
                               line.connection.is_written();
      // The driver's next request may take this very connection: it is idle before the driver hears.
      auto ended = std::move(line.flight);
      if (ended->timer) loop_->cancel(*ended->timer);
      --num_flights_;
      if (is_reusable)
        idle_[line.origin].push_back(&line);
      else
        close(line);
      return ended->sink.on_end({Outcome::Kind::kComplete, {}}, ended->last_at);
    }
  }
}

void EpollClient::end(Line& line, Outcome::Kind kind, std::string message, Clock::time_point at) {
  auto ended = std::move(line.flight);
  if (ended->timer) loop_->cancel(*ended->timer);
  --num_flights_;
  close(line);
  ended->sink.on_end({kind, std::move(message)}, at);
}

void EpollClient::close(Line& line) {
  auto& idle = idle_[line.origin];
  idle.erase(std::remove(idle.begin(), idle.end(), &line), idle.end());
  if (line.soon) loop_->cancel(*line.soon);
  line.soon.reset();
  line.is_closed = true;
  const auto found = lines_.find(&line);
  buried_.push_back(std::move(found->second));
  lines_.erase(found);
}

}  // namespace

Result<std::unique_ptr<Client>> Client::create(const ClientOptions& options) {
  PLIMSOLL_TRY(auto loop, EventLoop::create());
  return std::unique_ptr<Client>(std::make_unique<EpollClient>(std::move(loop), options));
}

}  // namespace plimsoll::http
