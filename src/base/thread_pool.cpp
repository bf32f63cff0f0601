// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>

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
  work_ = &work;
  num_chunks_ = num_chunks;
  next_chunk_.store(0, std::memory_order_relaxed);
  busy_workers_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  take_chunks(0);
  for (int busy = busy_workers_.load(std::memory_order_acquire); busy != 0;
       busy = busy_workers_.load(std::memory_order_acquire))
    wait_for_change(busy_workers_, busy);
}

void ThreadPool::take_chunks(int thread) {
  for (;;) {
    const std::int64_t chunk = next_chunk_.fetch_add(1, std::memory_order_relaxed);
    if (chunk >= num_chunks_) return;
    (*work_)(chunk, thread);
  }
}

void ThreadPool::worker_loop(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_for_change(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load()) return;
    take_chunks(thread);
    busy_workers_.fetch_sub(1, std::memory_order_acq_rel);
    busy_workers_.notify_one();
  }
}

}  // namespace plimsoll
