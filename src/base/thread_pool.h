// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for loops of independent chunks. Chunks are taken from one counter, so a thread
// that loses its core does not hold the others up. One caller at a time; the caller works too. Owns its
// threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace plimsoll {

class ThreadPool {
 public:
  /// `threads` in all, the caller included; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls work(chunk, thread) once for every chunk in [0, num_chunks); thread is in [0, threads()). Returns
  /// when all are done. What the chunks wrote is visible to the caller afterwards.
  void run(std::int64_t num_chunks, const std::function<void(std::int64_t chunk, int thread)>& work);

 private:
  void worker_loop(int thread);
  void take_chunks(int thread);

  std::vector<std::thread> workers_;
  const std::function<void(std::int64_t, int)>* work_ = nullptr;
  std::int64_t num_chunks_ = 0;
  std::atomic<std::int64_t> next_chunk_{0};
  std::atomic<int> busy_workers_{0};
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace plimsoll
