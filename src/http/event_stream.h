// SPDX-License-Identifier: Apache-2.0
// Which events does a text/event-stream hold? Incremental and bounded: bytes may be cut anywhere, a line that
// is whole is not copied. Owns only the unfinished line and event; one thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace plimsoll::http {

struct StreamEvent {
  std::string_view name;  // of the "event:" field; empty when there was none
  std::string_view data;  // "data:" lines joined by '\n'
};

class EventStreamReader {
 public:
  /// Called for each event with data; the views live until it returns.
  using OnEvent = std::function<void(const StreamEvent&)>;

  explicit EventStreamReader(std::size_t max_event_bytes = std::size_t{16} << 20)
      : max_event_bytes_(max_event_bytes) {}

  /// Reads on. False, then and for ever, when a line or event exceeds the bound.
  /// Source: docs/formats/event_stream.md.
  bool feed(std::string_view bytes, const OnEvent& on_event);
  /// The stream ended: an event whose blank line is missing still counts if its last line was whole or not,
  /// since servers that forget it are common.
  void finish(const OnEvent& on_event);

 private:
  void on_line(std::string_view line, const OnEvent& on_event);
  void dispatch(const OnEvent& on_event);

  std::size_t max_event_bytes_;
  std::string line_;
  std::string name_;
  std::string data_;
  bool has_data_ = false;
  bool is_start_ = true;       // a byte order mark may come
  bool after_return_ = false;  // the last line ended with CR: an LF belongs to it
  bool is_over_ = false;
};

}  // namespace plimsoll::http
