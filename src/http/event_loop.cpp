// SPDX-License-Identifier: Apache-2.0
#include "http/event_loop.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace plimsoll::http {
namespace {

constexpr std::size_t kEventsPerTurn = 512;

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int alarm = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  std::unique_ptr<EventLoop> loop(new EventLoop(epoll, alarm));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = nullptr;  // the alarm is nobody's socket
  if (epoll < 0 || alarm < 0 || ::epoll_ctl(epoll, EPOLL_CTL_ADD, alarm, &event) != 0)
    return fail(ErrorCode::kNetwork, "cannot wait for sockets: " + std::string(std::strerror(errno)), {},
                "raise the limit of open files (ulimit -n)");
  return loop;
}

EventLoop::~EventLoop() {
  if (alarm_ >= 0) ::close(alarm_);
  if (epoll_ >= 0) ::close(epoll_);
}

bool EventLoop::watch(int socket, Watcher& watcher, bool wants_write) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (wants_write ? EPOLLOUT : 0U);
  event.data.ptr = &watcher;
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) == 0;
}

void EventLoop::change(int socket, Watcher& watcher, bool wants_write) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLRDHUP | EPOLLET | (wants_write ? EPOLLOUT : 0U);
  event.data.ptr = &watcher;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket, &event);
}

void EventLoop::forget(int socket) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
}

EventLoop::Timer EventLoop::at(Clock::time_point when, std::function<void()> work) {
  return timers_.emplace(when, std::move(work));
}

void EventLoop::cancel(Timer timer) {
  timers_.erase(timer);
}

void EventLoop::set_alarm() {
  const auto next = timers_.empty() ? Clock::time_point::max() : timers_.begin()->first;
  if (next == alarm_at_) return;
  alarm_at_ = next;
  itimerspec when{};
  if (next != Clock::time_point::max()) {
    // Zero would switch the alarm off: a time that is past rings at the first nanosecond.
    const auto ns = std::max<std::int64_t>(
        1, std::chrono::duration_cast<std::chrono::nanoseconds>(next.time_since_epoch()).count());
    when.it_value.tv_sec = ns / 1'000'000'000;
    when.it_value.tv_nsec = ns % 1'000'000'000;
  }
  ::timerfd_settime(alarm_, TFD_TIMER_ABSTIME, &when, nullptr);
}

void EventLoop::run_due() {
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto timer = timers_.extract(timers_.begin());
    timer.mapped()();
  }
}

bool EventLoop::turn(bool has_calls, const std::function<void()>& after_batch) {
  if (timers_.empty() && !has_calls) return false;
  set_alarm();
  std::array<epoll_event, kEventsPerTurn> events;
  const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.ptr) {
      static_cast<Watcher*>(event.data.ptr)->on_ready(event.events);
    } else {
      std::uint64_t rung = 0;
      [[maybe_unused]] const auto read_bytes = ::read(alarm_, &rung, sizeof rung);
      alarm_at_ = Clock::time_point::max();
    }
  }
  after_batch();
  run_due();
  return true;
}

}  // namespace plimsoll::http
