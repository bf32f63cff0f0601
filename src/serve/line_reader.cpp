// SPDX-License-Identifier: Apache-2.0
#include "serve/line_reader.h"

#include <algorithm>

namespace plimsoll::serve {

LineReader::LineReader(std::istream& in, std::size_t ahead)
    : in_(in), ahead_(std::max<std::size_t>(1, ahead)) {
  in_.tie(nullptr);  // std::cin is tied to std::cout: each read would flush it while another thread writes
  thread_ = std::thread([this] { run(); });
}

LineReader::~LineReader() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void LineReader::run() {
  std::string line;
  while (std::getline(in_, line)) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_closed_ || lines_.size() < ahead_; });
    if (is_closed_) return;
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  is_at_end_ = true;
  changed_.notify_all();
}

LineReader::Next LineReader::next(bool waits) {
  std::unique_lock lock(mutex_);
  if (waits) changed_.wait(lock, [&] { return is_at_end_ || !lines_.empty(); });
  if (lines_.empty()) return {is_at_end_ ? Kind::kEnd : Kind::kNothingYet, {}};
  Next next{Kind::kLine, std::move(lines_.front())};
  lines_.pop_front();
  changed_.notify_all();
  return next;
}

}  // namespace plimsoll::serve
