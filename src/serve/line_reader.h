// SPDX-License-Identifier: Apache-2.0
// Lines of a stream that may be slow, read ahead on a thread of its own, so that work under way does not wait
// for input. The stream must outlive the reader and reach its end before the destructor returns.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <istream>
#include <mutex>
#include <string>
#include <thread>

namespace plimsoll::serve {

class LineReader {
 public:
  /// Reads at most `ahead` lines more than were taken.
  LineReader(std::istream& in, std::size_t ahead);
  ~LineReader();

  enum class Kind { kLine, kNothingYet, kEnd };
  struct Next {
    Kind kind = Kind::kNothingYet;
    std::string text;
  };
  /// The next line; `waits`: until there is one or the stream ends.
  Next next(bool waits);

 private:
  void run();

  std::istream& in_;
  std::size_t ahead_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool is_at_end_ = false;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace plimsoll::serve
