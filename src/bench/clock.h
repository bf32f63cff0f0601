// SPDX-License-Identifier: Apache-2.0
// Sends the load and stamps what comes back: one thread, one event loop, absolute schedule, concurrency
// limit. Knows requests as bytes; what replies mean is ReplyReader's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/record.h"
#include "bench/reply_format.h"
#include "bench/statistics.h"
#include "http/http.h"

namespace plimsoll::bench {

/// One request of the load.
struct Shot {
  double at_s = 0;            // from the start
  std::int64_t follows = -1;  // index of the shot whose reply it waits for; at_s means nothing then
  double delay_s = 0;         // after that reply's end
  std::size_t target = 0;     // which of Load::targets
};

struct Load {
  std::vector<http::Url> targets;
  http::Headers headers;
  std::vector<Shot> shots;  // each is followed by one other at most
  /// The body of a shot; asked once, before the run or, for one that follows, when that reply is there.
  std::function<std::string(std::size_t shot)> body_of;
  ReplyFormat format = ReplyFormat::kOpenai;
  std::int64_t max_concurrency = 0;  // 0: no limit
  std::chrono::milliseconds timeout{0};
  /// Asked now and then: true ends the run with what it has. May be null.
  std::function<bool()> is_interrupted;
  bool keep_alive = true;
  bool verify_tls = true;
  std::string request_id_prefix;  // of the header X-Request-Id; empty: none
};

/// Where the run stands.
struct Standing {
  std::int64_t finished = 0;
  std::int64_t failed = 0;
  std::int64_t running = 0;
  std::int64_t chunks = 0;  // with tokens, so far
  double elapsed_s = 0;
};
using StandingSink = std::function<void(const Standing&)>;

struct Observed {
  std::chrono::steady_clock::time_point origin;  // second 0
  double duration_s = 0;                         // to the last completion
  double cpu_s = 0;                              // of this thread
  Samples loop_lag_ms;                           // how late the loop woke when it had asked to
  Samples client_lag_ms;                         // from the kernel's stamp of a read to this client's
  bool was_interrupted = false;                  // records that are not over have is_unfinished
  std::int64_t late_chunks = 0;                  // came together with others in a read that was late
};

/// Sends every shot and waits for all replies; record i hears of shot i (token counts are left to the
/// caller). `on_start` hears of second 0; `on_standing` is called a few times a second and at the end.
/// Errors: kNetwork when a host's name cannot be resolved.
Result<Observed> send_all(const Load& load, std::vector<RequestRecord>& records,
                          const std::function<void(std::chrono::steady_clock::time_point)>& on_start,
                          const StandingSink& on_standing);

}  // namespace plimsoll::bench
