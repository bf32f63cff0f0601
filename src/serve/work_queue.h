// SPDX-License-Identifier: Apache-2.0
// Work that takes too long for the HTTP server's thread, done in order on a thread of its own. Any thread may
// push; the destructor waits for the work under way and drops the rest.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace plimsoll::serve {

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  void push(std::function<void()> work);

 private:
  void run();

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<std::function<void()>> work_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace plimsoll::serve
