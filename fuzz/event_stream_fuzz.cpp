// SPDX-License-Identifier: Apache-2.0
// Event streams and the replies in them. However the bytes are cut, the same events and the same record must
// come out, and tokens must add up.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bench/reply.h"
#include "http/event_stream.h"

namespace {

using namespace plimsoll;

constexpr std::size_t kMaxInput = 64 * 1024;

std::string read_events(std::string_view bytes, std::size_t step) {
  http::EventStreamReader reader;
  std::string found;
  const auto keep = [&](const http::StreamEvent& event) {
    found += std::string(event.name) + "\x01" + std::string(event.data) + "\x02";
  };
  for (std::size_t at = 0; at < bytes.size(); at += step)
    if (!reader.feed(bytes.substr(at, step), keep)) std::abort();  // the input is below its bound
  reader.finish(keep);
  return found;
}

bench::RequestRecord read_reply(std::string_view bytes, std::size_t step) {
  bench::RequestRecord record;
  bench::ReplyReader reader(record);
  reader.head(200, "text/event-stream", 0);
  for (std::size_t at = 0; at < bytes.size(); at += step) reader.body(bytes.substr(at, step), 1);
  reader.end(2);
  bench::count_tokens(record, nullptr);
  return record;
}

bool is_same(const bench::RequestRecord& a, const bench::RequestRecord& b) {
  return a.produced == b.produced && a.text == b.text && a.error == b.error && a.error_text == b.error_text &&
         a.output_tokens == b.output_tokens && a.chunks.size() == b.chunks.size();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > kMaxInput) return 0;
  const std::size_t step = 1 + (data[0] & 0x3f);
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (read_events(bytes, bytes.size() + 1) != read_events(bytes, step)) std::abort();
  const auto whole = read_reply(bytes, bytes.size() + 1);
  if (!is_same(whole, read_reply(bytes, step))) std::abort();
  std::int64_t sum = 0;
  for (const bench::Chunk& chunk : whole.chunks) {
    if (chunk.tokens < 0) std::abort();
    sum += chunk.tokens;
  }
  if (!whole.chunks.empty() && sum != whole.output_tokens) std::abort();
  return 0;
}
