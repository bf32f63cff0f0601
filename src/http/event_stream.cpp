// SPDX-License-Identifier: Apache-2.0
#include "http/event_stream.h"

#include <algorithm>

namespace plimsoll::http {

namespace {
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
}

bool EventStreamReader::feed(std::string_view bytes, const OnEvent& on_event) {
  // Both ends are searched apart, as memchr does it; the LF that was found serves until it is passed.
  std::size_t line_feed = bytes.find('\n');
  const auto take = [&](std::size_t count) {
    bytes.remove_prefix(count);
    if (line_feed == bytes.npos) return;
    line_feed = line_feed >= count ? line_feed - count : bytes.find('\n');
  };
  while (!bytes.empty() && !is_over_) {
    if (after_return_ && bytes.front() == '\n') {
      after_return_ = false;
      take(1);
      continue;
    }
    after_return_ = false;
    const std::size_t end = std::min(bytes.substr(0, line_feed).find('\r'), line_feed);
    if (end == bytes.npos) {
      line_ += bytes;
      is_over_ = line_.size() + data_.size() > max_event_bytes_;
      break;
    }
    after_return_ = bytes[end] == '\r';
    if (line_.size() + end + data_.size() > max_event_bytes_) {
      is_over_ = true;
      break;
    }
    if (line_.empty()) {
      on_line(bytes.substr(0, end), on_event);
    } else {
      line_ += bytes.substr(0, end);
      on_line(line_, on_event);
      line_.clear();
    }
    take(end + 1);
  }
  return !is_over_;
}

void EventStreamReader::finish(const OnEvent& on_event) {
  if (is_over_) return;
  if (!line_.empty()) on_line(line_, on_event);
  line_.clear();
  dispatch(on_event);
}

void EventStreamReader::on_line(std::string_view line, const OnEvent& on_event) {
  if (is_start_ && line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  is_start_ = false;
  if (line.empty()) return dispatch(on_event);
  const std::size_t colon = line.find(':');
  if (colon == 0) return;  // a comment, often a keep-alive
  const std::string_view field = line.substr(0, colon);
  std::string_view value = colon == line.npos ? std::string_view() : line.substr(colon + 1);
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (field == "data") {
    if (has_data_) data_ += '\n';
    data_ += value;
    has_data_ = true;
  } else if (field == "event") {
    name_ = value;
  }
}

void EventStreamReader::dispatch(const OnEvent& on_event) {
  if (has_data_) on_event(StreamEvent{name_, data_});
  name_.clear();
  data_.clear();
  has_data_ = false;
}

}  // namespace plimsoll::http
