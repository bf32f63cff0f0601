// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for loops of independent chunks. Whoever is free takes the next chunk, and a loop
// ends with its last chunk: a thread that has no core just then takes none and is waited for by nobody. One
// caller at a time; the caller works too. Owns its threads.
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
  /// when all are done. At most 2^31 - 1 chunks. What the chunks wrote is visible to the caller afterwards.
  void run(std::int64_t num_chunks, const std::function<void(std::int64_t chunk, int thread)>& work);

 private:
  void worker_loop(int thread);
  void take_chunks(int thread);

  std::vector<std::thread> workers_;
  const std::function<void(std::int64_t, int)>* work_ = nullptr;  // valid while a chunk is taken
  std::atomic<std::uint64_t> untaken_{0};  // of the current loop; its number in the upper half
  std::atomic<std::uint32_t> unfinished_{0};
  std::atomic<std::uint32_t> generation_{0};  // number of the current loop
  std::atomic<bool> stopping_{false};
};

}  // namespace plimsoll
