// SPDX-License-Identifier: Apache-2.0
#include "bench/clock.h"

#include <sys/resource.h>

#include <algorithm>
#include <deque>

#include "bench/lag.h"
#include "bench/reply.h"
#include "http/client.h"

namespace plimsoll::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Often enough to see a loop that is late by less than a token, seldom enough to cost nothing.
constexpr std::chrono::milliseconds kLagProbe{10};
constexpr std::chrono::milliseconds kTellEvery{250};
// A read that is later than this may hold chunks that came one by one.
constexpr std::chrono::milliseconds kLateRead{1};
// Eight take some 200 us. With one, streams that began together drift apart until each chunk wakes the client
// alone, which costs more than all the rest of it.
constexpr int kSendsPerRound = 8;
constexpr std::size_t kOpenAheadAtMost = 4096;
constexpr std::chrono::milliseconds kOpenAheadPatience{5000};

double thread_cpu_s() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

ErrorKind kind_of(http::Outcome::Kind kind) {
  switch (kind) {
    case http::Outcome::Kind::kConnect:
      return ErrorKind::kConnect;
    case http::Outcome::Kind::kTimeout:
      return ErrorKind::kTimeout;
    case http::Outcome::Kind::kEarlyClose:
      return ErrorKind::kEarlyClose;
    case http::Outcome::Kind::kMalformed:
      return ErrorKind::kBadStream;
    case http::Outcome::Kind::kComplete:
      break;
  }
  return ErrorKind::kNone;
}

class Driver {
 public:
  Driver(const Load& load, std::vector<RequestRecord>& records, http::Client& client,
         const std::function<void(Clock::time_point)>& on_start, const StandingSink& on_standing)
      : load_(load),
        records_(records),
        client_(client),
        on_start_(on_start),
        on_standing_(on_standing),
        bodies_(load.shots.size()),
        followers_(load.shots.size()) {
    for (RequestRecord& record : records) replies_.emplace_back(*this, record);
    for (std::size_t shot = 0; shot < load.shots.size(); ++shot) {
      records[shot].follows = load.shots[shot].follows;
      records[shot].target = load.shots[shot].target;
      if (load.shots[shot].follows >= 0) {
        followers_[static_cast<std::size_t>(load.shots[shot].follows)] = shot;
      } else {
        bodies_[shot] = load.body_of(shot);
        firsts_.push_back(shot);
      }
    }
    std::stable_sort(firsts_.begin(), firsts_.end(), [&load](std::size_t a, std::size_t b) {
      return load.shots[a].at_s < load.shots[b].at_s;
    });
  }

  Result<Observed> run() {
    open_ahead();
    const double cpu_before = thread_cpu_s();
    start_ = Clock::now();
    observed_.origin = start_;
    on_start_(start_);
    release_due();
    probe_lag();
    client_.run();
    if (!refusal_) return tl::unexpected(refusal_.error());
    if (observed_.was_interrupted) mark_unsent();
    observed_.cpu_s = thread_cpu_s() - cpu_before;
    observed_.loop_lag_ms = loop_lag_.to_samples_ms();
    observed_.client_lag_ms = client_lag_.to_samples_ms();
    tell();
    return std::move(observed_);
  }

 private:
  /// Hears of one request.
  class Reply final : public http::ReplySink {
   public:
    Reply(Driver& driver, RequestRecord& record)
        : driver_(driver), record_(record), reader_(record, driver.load_.format) {}
    void on_connected(TimePoint at) override { record_.connected_s = driver_.seconds(at); }
    void on_sent_again() override { record_.was_sent_again = true; }
    void on_read(const http::ReadStamp& stamp) override { driver_.on_read(stamp); }
    void on_head(int status, const http::Headers& headers, TimePoint at) override {
      reader_.head(status, http::header(headers, "content-type"), driver_.seconds(at));
    }
    void on_body(std::string_view bytes, TimePoint at) override {
      const std::size_t before = record_.chunks.size();
      reader_.body(bytes, driver_.seconds(at));
      driver_.on_chunks(record_.chunks.size() - before);
    }
    void on_end(const http::Outcome& outcome, TimePoint at) override {
      const double at_s = driver_.seconds(at);
      if (outcome.kind == http::Outcome::Kind::kComplete)
        reader_.end(at_s);
      else
        reader_.fail(kind_of(outcome.kind), outcome.message, at_s);
      driver_.finished(record_, at_s);
    }

   private:
    Driver& driver_;
    RequestRecord& record_;
    ReplyReader reader_;
  };

  double seconds(Clock::time_point at) const { return std::chrono::duration<double>(at - start_).count(); }

  Clock::time_point time_of(double at_s) const {
    return start_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at_s));
  }

  /// The connections that a closed loop will use, so that no first token waits for a handshake. An open loop
  /// opens its own as they are needed: how many is for the server to decide.
  void open_ahead() {
    if (!load_.keep_alive || load_.max_concurrency == 0) return;
    std::vector<std::size_t> wanted(load_.targets.size());
    const auto at_once = std::min<std::size_t>(static_cast<std::size_t>(load_.max_concurrency),
                                               std::min<std::size_t>(firsts_.size(), kOpenAheadAtMost));
    for (std::size_t i = 0; i < at_once; ++i) ++wanted[load_.shots[firsts_[i]].target];
    for (std::size_t target = 0; target < wanted.size(); ++target)
      client_.open_ahead(target, wanted[target], std::min(load_.timeout, kOpenAheadPatience));
  }

  /// Puts every shot whose time has come into the queue, and asks to be woken for the next one.
  void release_due() {
    const auto now = Clock::now();
    while (next_ < firsts_.size() && time_of(load_.shots[firsts_[next_]].at_s) <= now) {
      const std::size_t shot = firsts_[next_++];
      release(shot, load_.shots[shot].at_s);
    }
    send_queued();
    if (next_ < firsts_.size())
      client_.at(time_of(load_.shots[firsts_[next_]].at_s), [this] { release_due(); });
  }

  void release(std::size_t shot, double at_s) {
    records_[shot].scheduled_s = records_[shot].eligible_s = at_s;
    queue_.push_back(shot);
    if (has_slot()) ++num_eligible_;
  }

  /// One more request may run beside those that do and those that will in a moment.
  bool has_slot() const {
    return load_.max_concurrency == 0 || standing_.running + num_eligible_ < load_.max_concurrency;
  }

  /// Sends a few requests, and the next when the sockets have been looked at again: when many streams end
  /// together, the last words of some must not wait until the others' next requests are written.
  void send_queued() {
    if (is_sending_ || num_eligible_ == 0) return;
    is_sending_ = true;
    client_.at(Clock::now(), [this] {
      is_sending_ = false;
      for (int sent = 0; sent < kSendsPerRound && num_eligible_ > 0; ++sent) send_one();
      send_queued();
    });
  }

  void send_one() {
    const std::size_t shot = queue_.front();
    queue_.pop_front();
    --num_eligible_;
    ++standing_.running;
    const std::size_t target = load_.shots[shot].target;
    http::Call call{
        "POST", load_.targets[target].target, load_.headers, std::move(bodies_[shot]), load_.timeout, target};
    if (!load_.request_id_prefix.empty())
      call.headers.emplace_back("X-Request-Id", load_.request_id_prefix + std::to_string(shot));
    records_[shot].sent_s = seconds(Clock::now());
    refusal_ = client_.start(std::move(call), replies_[shot]);
    if (!refusal_) give_up();
  }

  /// All shots have the headers of the one that the client refused.
  void give_up() {
    queue_.clear();
    num_eligible_ = 0;
    next_ = firsts_.size();
    is_given_up_ = true;
  }

  void on_read(const http::ReadStamp& stamp) {
    is_late_read_ = stamp.received_at && stamp.read_at - *stamp.received_at > kLateRead;
    has_chunk_of_read_ = false;
    if (stamp.received_at) client_lag_.add(stamp.read_at - *stamp.received_at);
  }

  void on_chunks(std::size_t count) {
    if (count == 0) return;
    standing_.chunks += static_cast<std::int64_t>(count);
    // The first of a read has the time at which it came, or a later one; the rest of a late read do not.
    if (is_late_read_)
      observed_.late_chunks += static_cast<std::int64_t>(count) - (has_chunk_of_read_ ? 0 : 1);
    has_chunk_of_read_ = true;
  }

  void finished(RequestRecord& record, double at_s) {
    record.is_unfinished = observed_.was_interrupted;
    --standing_.running;
    ++standing_.finished;
    if (!record.is_success()) ++standing_.failed;
    observed_.duration_s = std::max(observed_.duration_s, at_s);
    // The first in the queue that has no slot yet waited for this one.
    if (std::ssize(queue_) > num_eligible_) {
      RequestRecord& waiting = records_[queue_[static_cast<std::size_t>(num_eligible_++)]];
      waiting.eligible_s = std::max(waiting.scheduled_s, at_s);
    }
    const auto follower = followers_[static_cast<std::size_t>(record.index)];
    if (follower && !is_given_up_) release_follower(*follower, at_s);
    send_queued();
  }

  void release_follower(std::size_t shot, double after_s) {
    bodies_[shot] = load_.body_of(shot);
    const double due_s = after_s + load_.shots[shot].delay_s;
    if (load_.shots[shot].delay_s <= 0) return release(shot, due_s);
    client_.at(time_of(due_s), [this, shot, due_s] {
      release(shot, due_s);
      send_queued();
    });
  }

  void tell() {
    standing_.elapsed_s = seconds(Clock::now());
    on_standing_(standing_);
  }

  void mark_unsent() {
    for (RequestRecord& record : records_)
      if (record.done_s <= 0) record.is_unfinished = true;
  }

  void interrupt() {
    observed_.was_interrupted = true;
    observed_.duration_s = seconds(Clock::now());
    give_up();
    client_.abandon("the run was interrupted");
  }

  void probe_lag() {
    if (standing_.finished == std::ssize(records_) || !refusal_) return;
    const auto asked = Clock::now() + kLagProbe;
    client_.at(asked, [this, asked] {
      const auto now = Clock::now();
      loop_lag_.add(now - asked);
      if (load_.is_interrupted && load_.is_interrupted()) return interrupt();
      if (now >= next_tell_) {
        tell();
        next_tell_ = now + kTellEvery;
      }
      probe_lag();
    });
  }

  const Load& load_;
  std::vector<RequestRecord>& records_;
  http::Client& client_;
  const std::function<void(Clock::time_point)>& on_start_;
  const StandingSink& on_standing_;
  std::deque<Reply> replies_;  // stable addresses
  std::vector<std::string> bodies_;
  std::vector<std::optional<std::size_t>> followers_;  // by the shot they wait for
  std::vector<std::size_t> firsts_;                    // shots that wait for no other, by time
  std::deque<std::size_t> queue_;                      // shots whose time has come
  std::int64_t num_eligible_ = 0;                      // how many at its head have a slot
  Clock::time_point start_;
  Clock::time_point next_tell_{};
  std::size_t next_ = 0;  // of firsts_
  Standing standing_;
  bool is_sending_ = false;  // a request will leave in the loop's next round
  bool is_given_up_ = false;
  bool is_late_read_ = false;       // the read under way
  bool has_chunk_of_read_ = false;  // it has brought a chunk
  Status refusal_;                  // of a request that could not be sent
  LagCounts loop_lag_;
  LagCounts client_lag_;
  Observed observed_;
};

}  // namespace

Result<Observed> send_all(const Load& load, std::vector<RequestRecord>& records,
                          const std::function<void(Clock::time_point)>& on_start,
                          const StandingSink& on_standing) {
  PLIMSOLL_TRY(const auto client,
               http::Client::create({.keep_alive = load.keep_alive, .verify_tls = load.verify_tls}));
  for (const http::Url& url : load.targets) {
    PLIMSOLL_TRY([[maybe_unused]] const std::size_t origin, client->add(url));
  }
  Driver driver(load, records, *client, on_start, on_standing);
  return driver.run();
}

}  // namespace plimsoll::bench
