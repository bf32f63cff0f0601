// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iterator>

#include "bench/bench.h"

namespace plimsoll::bench {
namespace {

/// [[seconds, tokens], ...], to a tenth of a microsecond. Written without a tree: a log may hold many
/// millions of chunks, and writing it is part of what a token costs this client.
void append_chunks(std::string& out, const std::vector<Chunk>& chunks) {
  out += '[';
  for (const Chunk& chunk : chunks) {
    if (out.back() != '[') out += ',';
    fmt::format_to(std::back_inserter(out), "[{:.7f},{}]", chunk.at_s, chunk.tokens);
  }
  out += ']';
}

Json before_chunks(const RequestRecord& r) {
  return Json::object({{"index", r.index},
                       {"follows", r.follows < 0 ? Json() : Json(r.follows)},
                       {"endpoint", static_cast<std::int64_t>(r.target)},
                       {"prompt", r.prompt},
                       {"prompt_tokens", r.prompt_tokens},
                       {"scheduled_s", r.scheduled_s},
                       {"queued_s", r.eligible_s},
                       {"sent_s", r.sent_s},
                       {"connected_s", r.connected_s},
                       {"headers_s", r.headers_s},
                       {"first_byte_s", r.first_byte_s},
                       {"first_token_s", r.first_token_s}});
}

Json after_chunks(const RequestRecord& r) {
  Json error;
  if (!r.is_success()) error = Json::object({{"kind", to_string(r.error)}, {"text", r.error_text}});
  return Json::object({{"first_answer_s", r.first_answer_s},
                       {"last_token_s", r.last_token_s},
                       {"done_s", r.done_s},
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
