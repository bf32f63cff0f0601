// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>

#include "bench/bench.h"

namespace plimsoll::bench {
namespace {

/// Seconds as they are written, to a tenth of a microsecond.
std::string seconds_text(double at_s) {
  return fmt::format("{:.7f}", at_s);
}

/// The number that seconds_text() spells: a stamp equals the time of the chunk that it was taken from.
Json seconds(const std::optional<double>& at_s) {
  if (!at_s) return {};
  const std::string text = seconds_text(*at_s);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// [[seconds, tokens], ...]. Written without a tree: a log may hold many
/// millions of chunks, and writing it is part of what a token costs this client.
void append_chunks(std::string& out, const std::vector<Chunk>& chunks) {
  out += '[';
  for (const Chunk& chunk : chunks) {
    if (out.back() != '[') out += ',';
    fmt::format_to(std::back_inserter(out), "[{},{}]", seconds_text(chunk.at_s), chunk.tokens);
  }
  out += ']';
}

Json before_chunks(const RequestRecord& r) {
  return Json::object({{"index", r.index},
                       {"follows", r.follows < 0 ? Json() : Json(r.follows)},
                       {"endpoint", static_cast<std::int64_t>(r.target)},
                       {"prompt", r.prompt},
                       {"prompt_tokens", r.prompt_tokens},
                       {"scheduled_s", seconds(r.scheduled_s)},
                       {"queued_s", seconds(r.eligible_s)},
                       {"sent_s", seconds(r.sent_s)},
                       {"connected_s", seconds(r.connected_s)},
                       {"headers_s", seconds(r.headers_s)},
                       {"first_byte_s", seconds(r.first_byte_s)},
                       {"first_token_s", seconds(r.first_token_s)}});
}

Json after_chunks(const RequestRecord& r) {
  Json error;
  if (!r.is_success()) error = Json::object({{"kind", to_string(r.error)}, {"text", r.error_text}});
  return Json::object({{"first_answer_s", seconds(r.first_answer_s)},
                       {"last_token_s", seconds(r.last_token_s)},
                       {"done_s", seconds(r.done_s)},
                       {"output_tokens", r.output_tokens},
                       {"status", r.status == 0 ? Json() : Json(r.status)},
                       {"error", std::move(error)},
                       {"text", r.text}});
}

}  // namespace

std::string to_request_log(const RunResult& result) {
  std::string out;
  for (const RequestRecord& record : result.records) {
    out += dump(before_chunks(record));
    out.back() = ',';  // the object goes on
    out += "\"chunks\":";
    append_chunks(out, record.chunks);
    out += ',';
    out += std::string_view(dump(after_chunks(record))).substr(1);
    out += '\n';
  }
  return out;
}

}  // namespace plimsoll::bench
