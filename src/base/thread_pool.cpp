// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>

#include "base/result.h"

namespace plimsoll {
namespace {

// The loops of a decode step are some 10 us apart, and waking a sleeper takes about 50: worth a short spin,
// not worth burning a core that others need.
constexpr std::chrono::microseconds kSpin{50};
constexpr int kPausesPerLook = 32;  // at the clock

void spin_hint() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until `is_over`; false when that takes too long.
template <class Condition>
bool spin_until(const Condition& is_over) {
  std::chrono::steady_clock::time_point deadline{};
  for (;;) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (is_over()) return true;
      spin_hint();
    }
    const auto now = std::chrono::steady_clock::now();
    if (deadline == std::chrono::steady_clock::time_point{}) deadline = now + kSpin;
    if (now > deadline) return false;
  }
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : num_threads_(std::max(1, threads)),
      ranges_(std::make_unique<Range[]>(static_cast<std::size_t>(num_threads_))) {
  for (int thread = 1; thread < num_threads_; ++thread)
    workers_.emplace_back([this, thread] { worker_loop(thread); });
}

ThreadPool::~ThreadPool() {
  is_stopping_.store(true, std::memory_order_relaxed);
  loop_.fetch_add(1);
  loop_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t num_chunks, Work work) {
  if (workers_.empty() || num_chunks <= 1) {
    for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) work(chunk, 0);
    return;
  }
  PLIMSOLL_CHECK(num_chunks <= INT32_MAX, "chunks are counted in 31 bits");
  const std::uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  const std::uint64_t number = std::uint64_t{loop} << 32;
  object_.store(work.object(), std::memory_order_relaxed);
  call_.store(work.call(), std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  for (int thread = 0; thread < num_threads_; ++thread) {
    const auto begin = static_cast<std::uint64_t>(num_chunks * thread / num_threads_);
    const auto end = static_cast<std::uint64_t>(num_chunks * (thread + 1) / num_threads_);
    Range& range = ranges_[static_cast<std::size_t>(thread)];
    // The end last: whoever reads it finds a `next` of this loop or a later one.
    range.next.store(number | begin, std::memory_order_release);
    range.end.store(number | end, std::memory_order_release);
  }
  loop_.store(loop);
  loop_.notify_all();
  const std::uint32_t done = take_chunks(0, loop, work);
  wait_for_others(static_cast<std::uint32_t>(num_chunks) - done);
}

// Takes chunks of this loop, first at home, until none is left; returns how many. A chunk that was taken
// keeps its loop from ending, so what was read of the loop before it was taken is of that loop.
std::uint32_t ThreadPool::take_chunks(int thread, std::uint32_t loop, Work work) {
  std::uint32_t done = 0;
  for (int i = 0, home = thread; i < num_threads_; ++i) {
    Range& range = ranges_[static_cast<std::size_t>(home)];
    home = home + 1 == num_threads_ ? 0 : home + 1;
    const std::uint64_t end = range.end.load(std::memory_order_acquire);
    if (end >> 32 != loop) break;
    std::uint64_t next = range.next.load(std::memory_order_acquire);
    while (next >> 32 == loop && next < end) {
      if (!range.next.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel,
                                            std::memory_order_acquire))
        continue;
      work(static_cast<std::uint32_t>(next), thread);
      ++done;
      next = range.next.load(std::memory_order_acquire);
    }
  }
  return done;
}

void ThreadPool::wait_for_others(std::uint32_t num_chunks) {
  const auto is_over = [&] { return done_.load(std::memory_order_acquire) == num_chunks; };
  if (spin_until(is_over)) return;
  for (std::uint32_t done = done_.load(std::memory_order_acquire); done != num_chunks;
       done = done_.load(std::memory_order_acquire))
    done_.wait(done, std::memory_order_acquire);
}

void ThreadPool::worker_loop(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    if (!spin_until([&] { return loop_.load(std::memory_order_acquire) != seen; })) loop_.wait(seen);
    seen = loop_.load(std::memory_order_acquire);
    if (is_stopping_.load(std::memory_order_relaxed)) return;
    const Work work(object_.load(std::memory_order_relaxed), call_.load(std::memory_order_relaxed));
    const std::uint32_t done = take_chunks(thread, seen, work);
    if (done == 0) continue;
    done_.fetch_add(done);
    done_.notify_one();
  }
}

}  // namespace plimsoll
