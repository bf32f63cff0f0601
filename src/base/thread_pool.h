// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for loops of independent chunks. Each thread has a home range of chunks, which it
// takes in ascending order, and helps with the others' ranges when its own is empty: a thread that has no
// core just then is waited for by nobody, but for the one chunk it may be in. Waiting spins briefly, then
// sleeps. One caller at a time; the caller works too. Owns its threads; run() allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace plimsoll {

class ThreadPool {
 public:
  using Work = FunctionRef<void(std::int64_t chunk, int thread)>;

  /// `threads` in all, the caller included; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return num_threads_; }

  /// Calls work(chunk, thread) once for every chunk in [0, num_chunks); thread is in [0, threads()), and no
  /// two chunks run at once with the same one. Returns when all are done. At most 2^31 - 1 chunks; not from
  /// within a chunk of the same team. What the chunks wrote is visible to the caller afterwards.
  void run(std::int64_t num_chunks, Work work);

 private:
  /// A home range: chunks [next, end) are not taken yet. The loop's number stands in the upper halves, so
  /// that a thread that comes late to a loop finds nothing in the next one's ranges.
  struct alignas(64) Range {
    std::atomic<std::uint64_t> next{0}, end{0};
  };

  void worker_loop(int thread);
  std::uint32_t take_chunks(int thread, std::uint32_t loop, Work work);
  void wait_for_others(std::uint32_t num_chunks);

  int num_threads_;
  std::unique_ptr<Range[]> ranges_;  // [threads]
  // What workers read when a loop begins.
  alignas(64) std::atomic<std::uint32_t> loop_{0};  // number of the current loop
  std::atomic<const void*> object_{nullptr};        // of the current loop's work
  std::atomic<Work::Call> call_{nullptr};
  std::atomic<bool> is_stopping_{false};
  // What they write when they find no more chunks.
  alignas(64) std::atomic<std::uint32_t> done_{0};  // chunks of the current loop that workers have done
  std::vector<std::thread> workers_;
};

}  // namespace plimsoll
