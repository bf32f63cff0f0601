// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>

#include "base/result.h"

namespace plimsoll {
namespace {

// Loops of one decode step are some 10 us apart: worth a short spin, not worth burning a core that others
// need.
constexpr int kSpins = 2000;

void spin_hint() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until `value` differs from `old`: spins first, then sleeps.
template <class T>
void wait_for_change(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    spin_hint();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  for (int thread = 1; thread < std::max(1, threads); ++thread)
    workers_.emplace_back([this, thread] { worker_loop(thread); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::run(std::int64_t num_chunks, const std::function<void(std::int64_t, int)>& work) {
  if (workers_.empty() || num_chunks <= 1) {
    for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) work(chunk, 0);
    return;
  }
  PLIMSOLL_CHECK(num_chunks <= INT32_MAX, "chunks are counted in 31 bits");
  const auto count = static_cast<std::uint32_t>(num_chunks);
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
  work_ = &work;
  unfinished_.store(count, std::memory_order_relaxed);
  untaken_.store(std::uint64_t{generation} << 32 | count, std::memory_order_release);
  generation_.store(generation, std::memory_order_release);
  generation_.notify_all();
  take_chunks(0);
  for (std::uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire))
    wait_for_change(unfinished_, left);
}

void ThreadPool::take_chunks(int thread) {
  std::uint64_t untaken = untaken_.load(std::memory_order_acquire);
  for (;;) {
    const auto left = static_cast<std::uint32_t>(untaken);
    if (left == 0) return;
    // With its loop's number a stale value fails here, so what is taken belongs to a loop still under way.
    if (!untaken_.compare_exchange_weak(untaken, untaken - 1, std::memory_order_acq_rel)) continue;
    (*work_)(left - 1, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    untaken = untaken_.load(std::memory_order_acquire);
  }
}

void ThreadPool::worker_loop(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_for_change(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load()) return;
    take_chunks(thread);
  }
}

}  // namespace plimsoll
