// SPDX-License-Identifier: Apache-2.0
#include "bench/over_time.h"

#include <algorithm>

namespace plimsoll::bench {

std::vector<Change> running_changes(const std::vector<RequestRecord>& records) {
  std::vector<Change> changes;
  for (const RequestRecord& record : records) {
    changes.push_back({record.sent_s, 1});
    changes.push_back({record.done_s, -1});
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

std::vector<Change> live_token_changes(const std::vector<RequestRecord>& records) {
  std::vector<Change> changes;
  for (const RequestRecord& record : records) {
    if (!record.is_success() || !record.first_token_s) continue;
    std::int64_t held = record.prompt_tokens;
    changes.push_back({*record.first_token_s, record.prompt_tokens});
    for (const Chunk& chunk : record.chunks) {
      changes.push_back({chunk.at_s, chunk.tokens});
      held += chunk.tokens;
    }
    changes.push_back({record.done_s, -held});
  }
  std::sort(changes.begin(), changes.end());
  return changes;
}

std::optional<SteadyWindow> steady_window(const std::vector<RequestRecord>& records,
                                          std::int64_t concurrency) {
  if (concurrency < 1) return std::nullopt;
  SteadyWindow window;
  bool has_begun = false;
  std::int64_t running = 0;
  for (const Change& change : running_changes(records)) {
    if (running >= concurrency) window.to_s = change.at_s;  // it held until here
    running += change.by;
    if (running < concurrency || has_begun) continue;
    window.from_s = change.at_s;
    has_begun = true;
  }
  const double seconds = window.to_s - window.from_s;
  if (!has_begun || seconds <= 0) return std::nullopt;
  double num_requests = 0;
  std::int64_t num_tokens = 0;
  const auto is_inside = [&](double at_s) { return at_s > window.from_s && at_s <= window.to_s; };
  for (const RequestRecord& record : records) {
    if (!record.is_success()) continue;
    // The part of each request that lies inside: with few rounds the ends alone are no rate.
    const double inside_s = std::min(record.done_s, window.to_s) - std::max(record.sent_s, window.from_s);
    if (inside_s > 0) num_requests += inside_s / (record.done_s - record.sent_s);
    for (const Chunk& chunk : record.chunks)
      if (is_inside(chunk.at_s)) num_tokens += chunk.tokens;
  }
  window.request_rate = num_requests / seconds;
  window.output_rate = static_cast<double>(num_tokens) / seconds;
  return window;
}

}  // namespace plimsoll::bench
