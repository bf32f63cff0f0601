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
#include "http/http.h"

namespace plimsoll::bench {

/// One request, ready to send.
struct Shot {
  std::string body;
  double at_s = 0;  // from the start
};

struct Load {
  http::Url url;
  http::Headers headers;
  std::vector<Shot> shots;
  std::int64_t max_concurrency = 0;  // 0: no limit
  std::chrono::milliseconds timeout{0};
};

struct Observed {
  double duration_s = 0;  // to the last completion
  double cpu_s = 0;       // of this thread
  std::vector<double> loop_lag_ms;
};

/// Sends every shot and waits for all replies; record i hears of shot i (token counts are left to the
/// caller). `on_finished` is called after each reply with the seconds passed. Errors: kNetwork when the
/// host's name cannot be resolved.
Result<Observed> send_all(const Load& load, std::vector<RequestRecord>& records,
                          const std::function<void(const RequestRecord&, double)>& on_finished);

}  // namespace plimsoll::bench
