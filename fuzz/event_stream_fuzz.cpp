// SPDX-License-Identifier: Apache-2.0
// Event streams and the replies in them, in every format. However the bytes are cut, the same events and the
// same record must come out, and tokens must add up. The reader of single events agrees with the tree reader.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_view.h"
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

bench::RequestRecord read_reply(bench::ReplyFormat format, std::string_view bytes, std::size_t step) {
  bench::RequestRecord record;
  bench::ReplyReader reader(record, format);
  reader.head(200, "", 0);
  for (std::size_t at = 0; at < bytes.size(); at += step) reader.body(bytes.substr(at, step), 1);
  reader.end(2);
  bench::count_tokens(record, nullptr);
  return record;
}

bool is_same(const bench::RequestRecord& a, const bench::RequestRecord& b) {
  return a.produced == b.produced && a.text == b.text && a.error == b.error && a.error_text == b.error_text &&
         a.output_tokens == b.output_tokens && a.chunks.size() == b.chunks.size();
}

/// Whatever the server says, tokens add up.
void check_sums(const bench::RequestRecord& record) {
  std::int64_t sum = 0;
  for (const bench::Chunk& chunk : record.chunks) {
    if (chunk.tokens < 0) std::abort();
    sum += chunk.tokens;
  }
  if (!record.chunks.empty() && sum != record.output_tokens) std::abort();
}

/// The reader of events takes what the tree reader takes, and sees the same.
void check_json(std::string_view text) {
  static JsonReader reader;
  const auto tree = parse_json(text, "input");
  const auto view = reader.read(text, "input");
  if (tree.has_value() != view.has_value()) std::abort();
  // Written out, NaN is null and numbers beyond 64 bits are doubles in both.
  if (tree && *parse_json(dump(*tree), "tree") != *parse_json(dump(view->to_json()), "view")) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1 || size > kMaxInput) return 0;
  const std::size_t step = 1 + (data[0] & 0x3f);
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (read_events(bytes, bytes.size() + 1) != read_events(bytes, step)) std::abort();
  for (int i = 0; i <= static_cast<int>(bench::ReplyFormat::kLlamaCpp); ++i) {
    const auto format = static_cast<bench::ReplyFormat>(i);
    const auto whole = read_reply(format, bytes, bytes.size() + 1);
    if (!is_same(whole, read_reply(format, bytes, step))) std::abort();
    check_sums(whole);
  }
  check_json(bytes);
  http::EventStreamReader events;
  events.feed(bytes, [](const http::StreamEvent& event) { check_json(event.data); });
  return 0;
}
