// SPDX-License-Identifier: Apache-2.0
#include "bench/clock.h"

#include <sys/resource.h>

#include <deque>

#include "bench/reply.h"
#include "http/client.h"

namespace plimsoll::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Often enough to see a loop that is late by less than a token, seldom enough to cost nothing.
constexpr std::chrono::milliseconds kLagProbe{10};

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
         const std::function<void(const RequestRecord&, double)>& on_finished)
      : load_(load), records_(records), client_(client), on_finished_(on_finished) {
    for (RequestRecord& record : records) replies_.emplace_back(*this, record);
  }

  Result<Observed> run() {
    const double cpu_before = thread_cpu_s();
    start_ = Clock::now();
    release_due();
    probe_lag();
    client_.run();
    if (!refusal_) return tl::unexpected(refusal_.error());
    observed_.cpu_s = thread_cpu_s() - cpu_before;
    return std::move(observed_);
  }

 private:
  /// Hears of one request.
  class Reply final : public http::ReplySink {
   public:
    Reply(Driver& driver, RequestRecord& record) : driver_(driver), record_(record), reader_(record) {}
    void on_head(int status, const http::Headers& headers, TimePoint at) override {
      reader_.head(status, http::header(headers, "content-type"), driver_.seconds(at));
    }
    void on_body(std::string_view bytes, TimePoint at) override { reader_.body(bytes, driver_.seconds(at)); }
    void on_end(const http::Outcome& outcome, TimePoint at) override {
      const double at_s = driver_.seconds(at);
      if (outcome.kind == http::Outcome::Kind::kComplete)
        reader_.end(at_s);
      else
        reader_.fail(kind_of(outcome.kind), outcome.message, at_s);
      driver_.finished(record_, at_s);
    }
    RequestRecord& record() { return record_; }

   private:
    Driver& driver_;
    RequestRecord& record_;
    ReplyReader reader_;
  };

  double seconds(Clock::time_point at) const { return std::chrono::duration<double>(at - start_).count(); }

  Clock::time_point due(std::size_t shot) const {
    return start_ +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(load_.shots[shot].at_s));
  }

  /// Puts every shot whose time has come into the queue, and asks to be woken for the next one.
  void release_due() {
    const auto now = Clock::now();
    while (next_ < load_.shots.size() && due(next_) <= now) {
      records_[next_].scheduled_s = records_[next_].eligible_s = load_.shots[next_].at_s;
      queue_.push_back(next_++);
    }
    send_queued();
    if (next_ < load_.shots.size()) client_.at(due(next_), [this] { release_due(); });
  }

  void send_queued() {
    while (!queue_.empty() && (load_.max_concurrency == 0 || active_ < load_.max_concurrency)) {
      const std::size_t shot = queue_.front();
      queue_.pop_front();
      ++active_;
      http::Call call{"POST", load_.url.target, load_.headers, load_.shots[shot].body, load_.timeout};
      const auto now = Clock::now();
      records_[shot].sent_s = seconds(now);
      refusal_ = client_.start(std::move(call), replies_[shot]);
      if (!refusal_) return give_up();
    }
  }

  /// All shots have the headers of the one that the client refused.
  void give_up() {
    queue_.clear();
    next_ = load_.shots.size();
  }

  void finished(RequestRecord& record, double at_s) {
    --active_;
    ++num_finished_;
    observed_.duration_s = std::max(observed_.duration_s, at_s);
    // The request at the head of the queue waited for this slot.
    if (!queue_.empty()) {
      RequestRecord& waiting = records_[queue_.front()];
      waiting.eligible_s = std::max(waiting.scheduled_s, at_s);
    }
    send_queued();
    on_finished_(record, seconds(Clock::now()));
  }

  void probe_lag() {
    if (num_finished_ == records_.size() || !refusal_) return;
    const auto asked = Clock::now() + kLagProbe;
    client_.at(asked, [this, asked] {
      observed_.loop_lag_ms.push_back(
          std::chrono::duration<double, std::milli>(Clock::now() - asked).count());
      probe_lag();
    });
  }

  const Load& load_;
  std::vector<RequestRecord>& records_;
  http::Client& client_;
  const std::function<void(const RequestRecord&, double)>& on_finished_;
  std::deque<Reply> replies_;  // stable addresses
  std::deque<std::size_t> queue_;
  Clock::time_point start_;
  std::size_t next_ = 0;
  std::int64_t active_ = 0;
  std::size_t num_finished_ = 0;
  Status refusal_;  // of a request that could not be sent
  Observed observed_;
};

}  // namespace

Result<Observed> send_all(const Load& load, std::vector<RequestRecord>& records,
                          const std::function<void(const RequestRecord&, double)>& on_finished) {
  PLIMSOLL_TRY(const auto client, http::Client::create(load.url));
  Driver driver(load, records, *client, on_finished);
  return driver.run();
}

}  // namespace plimsoll::bench
