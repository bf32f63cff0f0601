// SPDX-License-Identifier: Apache-2.0
// What the records say along the time axis: how much ran at each moment, and when the load was as asked.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench/record.h"

namespace plimsoll::bench {

struct Change {
  double at_s = 0;
  std::int64_t by = 0;
  auto operator<=>(const Change&) const = default;
};

/// Requests under way, failed ones too: +1 when sent, -1 when done; ascending, of one instant the ends first.
std::vector<Change> running_changes(const std::vector<RequestRecord>& records);

/// Tokens that live in the server's cache: the prompt from the first token on, each token from its chunk,
/// until the reply's end. Successful requests only; ascending.
std::vector<Change> live_token_changes(const std::vector<RequestRecord>& records);

/// The part of a run in which the asked concurrency was held: without the ramp up and the drain.
struct SteadyWindow {
  double from_s = 0;        // the concurrency is first reached
  double to_s = 0;          // the concurrency holds for the last time
  double request_rate = 0;  // successful requests that ended inside, per second
  double output_rate = 0;   // tokens that came inside, per second
};
/// Nothing when `concurrency` requests never ran at once, or only for an instant.
std::optional<SteadyWindow> steady_window(const std::vector<RequestRecord>& records,
                                          std::int64_t concurrency);

}  // namespace plimsoll::bench
