// SPDX-License-Identifier: Apache-2.0
// What came on a socket, and when did the kernel receive it? One read with SO_TIMESTAMPING's software stamp.
// Any thread; keeps nothing.
#pragma once

#include <chrono>
#include <cstddef>
#include <ctime>
#include <optional>
#include <string_view>

#include "http/client.h"

namespace plimsoll::http {

/// From now on the kernel notes when it receives what this socket gets. Without effect where it cannot.
void ask_for_stamps(int socket);

/// What to add to a time of the wall clock to have one of the steady clock, as both stand now.
std::chrono::nanoseconds wall_to_steady();

struct Reading {
  std::string_view bytes;
  bool is_end = false;  // the peer has closed, or `fault` happened
  int fault = 0;        // errno
  ReadStamp::TimePoint read_at;
  std::optional<timespec> received_at;  // wall clock

  /// The kernel's time is never later than read_at, nor earlier than `after` unless read_at is: two clocks
  /// were read one after the other, and what they are apart must not turn the order of events.
  ReadStamp stamp(std::chrono::nanoseconds to_steady, ReadStamp::TimePoint after = {}) const;
};

/// Reads once, into space[0, most). Nothing when nothing has come.
std::optional<Reading> receive(int socket, char* space, std::size_t most);

}  // namespace plimsoll::http
