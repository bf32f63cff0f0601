// SPDX-License-Identifier: Apache-2.0
// A server whose answers leave by a timetable, and that knows when each piece really left: what a load client
// is held against. One thread of its own on a loopback port; plain HTTP/1.1. Not for serving: it trusts its
// client.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace plimsoll::http {

/// One piece of an answer's body, sent as one chunk in one write, `after` the request's arrival.
struct TimedPiece {
  std::chrono::nanoseconds after{0};
  std::string bytes;
};
using Timetable = std::vector<TimedPiece>;  // ascending

/// What the server knows of one request.
struct TimedExchange {
  using TimePoint = std::chrono::steady_clock::time_point;
  std::string request_body;
  TimePoint arrived_at;               // by the kernel where it says so
  std::vector<TimePoint> written_at;  // by piece: right before the write
};

class TimedServer {
 public:
  using TimetableOf = std::function<std::shared_ptr<const Timetable>(const std::string& request_body)>;

  /// Listens on a free port of the loopback; `timetable_of` is called on the server's thread. Errors:
  /// kNetwork.
  static Result<std::unique_ptr<TimedServer>> start(TimetableOf timetable_of);
  virtual ~TimedServer() = default;
  virtual int port() const = 0;
  /// Ends the thread. Every exchange so far, by arrival.
  virtual std::vector<TimedExchange> stop() = 0;
};

}  // namespace plimsoll::http
