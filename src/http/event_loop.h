// SPDX-License-Identifier: Apache-2.0
// When is a socket ready, and when is it time? One epoll and its timers on the caller's thread, for the load
// client alone: every socket that is ready is read before any of what was read is looked at, so that the work
// on one answer does not delay the time stamp of the next. Not thread-safe. Watchers must outlive their
// watch.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/result.h"

namespace plimsoll::http {

class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Timers = std::multimap<Clock::time_point, std::function<void()>>;
  using Timer = Timers::iterator;

  class Watcher {
   public:
    virtual ~Watcher() = default;
    /// `events` are epoll's. Must not end any watch, nor destroy a watcher: that is after_batch's.
    virtual void on_ready(std::uint32_t events) = 0;
  };

  /// Errors: kNetwork when the system gives no epoll or timer.
  static Result<std::unique_ptr<EventLoop>> create();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Edge-triggered: a socket that was not read to its end is asked about anew with change(). Errors and
  /// hang-ups are always told. False when the system refuses.
  bool watch(int socket, Watcher& watcher, bool wants_write);
  void change(int socket, Watcher& watcher, bool wants_write);
  void forget(int socket);

  /// Runs `work` at `when`, at once if that is past. The handle is valid until then.
  Timer at(Clock::time_point when, std::function<void()> work);
  void cancel(Timer timer);

  /// One round: waits for the next event or timer, tells the watchers, calls `after_batch`, then runs the
  /// timers that are due. False, at once, when there is no timer and `has_calls` says that nobody waits.
  bool turn(bool has_calls, const std::function<void()>& after_batch);

 private:
  EventLoop(int epoll, int alarm) : epoll_(epoll), alarm_(alarm) {}
  void set_alarm();
  void run_due();

  int epoll_;
  int alarm_;  // a timerfd: epoll's own time-out knows whole milliseconds only
  Timers timers_;
  Clock::time_point alarm_at_ = Clock::time_point::max();
};

}  // namespace plimsoll::http
