// SPDX-License-Identifier: Apache-2.0
// Any bytes as an event stream: cut anywhere, the same events come out.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "http/event_stream.h"

namespace {

// A small bound, so that inputs reach it.
constexpr std::size_t kMaxEventBytes = 256;

std::vector<std::string> events_of(std::string_view bytes, std::size_t piece_bytes) {
  std::vector<std::string> events;
  plimsoll::http::EventStreamReader reader(kMaxEventBytes);
  const auto keep = [&](const plimsoll::http::StreamEvent& event) {
    events.push_back(std::string(event.name) + '\0' + std::string(event.data));
  };
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes)
    if (!reader.feed(bytes.substr(at, piece_bytes), keep)) return events;
  reader.finish(keep);
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = events_of(bytes, size);
  if (events_of(bytes, 1) != whole || events_of(bytes, 7) != whole) std::abort();
  return 0;
}
