// SPDX-License-Identifier: Apache-2.0
#include "bench/reply.h"

#include <algorithm>

#include "base/json.h"

namespace plimsoll::bench {
namespace {

// Enough of an error body to recognise it.
constexpr std::size_t kMaxErrorBytes = 2048;
// No reply is longer; sums over all requests stay far from overflow.
constexpr std::int64_t kMaxTokens = std::int64_t{1} << 40;

std::string_view text_of(const Json& value) {
  const std::string* text = value.as_string();
  return text ? std::string_view(*text) : std::string_view();
}

/// Names and arguments of tool calls: what the model generated of them.
std::string call_text(const Json& calls) {
  std::string out;
  for (const Json& call : calls.items()) {
    out += text_of(call["function"]["name"]);
    out += text_of(call["function"]["arguments"]);
  }
  return out;
}

}  // namespace

void ReplyReader::set_error(ErrorKind kind, std::string_view text) {
  if (record_->error != ErrorKind::kNone) return;  // the first cause is the one that counts
  record_->error = kind;
  record_->error_text = std::string(text.substr(0, kMaxErrorBytes));
}

void ReplyReader::head(int status, std::string_view content_type, double at_s) {
  record_->status = status;
  record_->headers_s = at_s;
  is_stream_ =
      status == 200 && (content_type.empty() || content_type.find("event-stream") != content_type.npos);
  if (status != 200) {
    set_error(ErrorKind::kHttpStatus, "");
  } else if (!is_stream_) {
    set_error(ErrorKind::kBadStream, "");
  }
}

void ReplyReader::body(std::string_view bytes, double at_s) {
  if (!record_->first_byte_s) record_->first_byte_s = at_s;
  if (!is_stream_) {
    std::string& text = record_->error_text;
    text += bytes.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, text.size()));
    return;
  }
  const bool is_bounded =
      events_.feed(bytes, [&](const http::StreamEvent& event_data) { event(event_data.data, at_s); });
  if (!is_bounded) set_error(ErrorKind::kBadStream, "an event is larger than 16 MiB");
}

void ReplyReader::end(double at_s) {
  record_->done_s = at_s;
  if (is_stream_) events_.finish([&](const http::StreamEvent& event_data) { event(event_data.data, at_s); });
  if (is_stream_ && !is_done_) set_error(ErrorKind::kEarlyClose, "the stream ended without [DONE]");
  if (record_->error == ErrorKind::kBadStream && record_->error_text.empty())
    record_->error_text = "the answer is no event stream";
}

void ReplyReader::fail(ErrorKind kind, std::string_view text, double at_s) {
  record_->done_s = at_s;
  set_error(kind, text);
}

void ReplyReader::event(std::string_view data, double at_s) {
  if (is_done_ || record_->error != ErrorKind::kNone) return;
  if (data == "[DONE]") {
    is_done_ = true;
    return;
  }
  const auto parsed = parse_json(data, "event");
  if (!parsed || !parsed->is_object())
    return set_error(ErrorKind::kBadStream,
                     "an event is no JSON object: " + std::string(data.substr(0, 200)));
  if (const Json& error = (*parsed)["error"]; !error.is_null())
    return set_error(ErrorKind::kErrorEvent, data);
  std::int64_t grown = 0;
  if (const Json& counts = (*parsed)["usage"]; counts.is_object()) {
    const auto& choices = (*parsed)["choices"].items();
    usage(counts);
    const std::int64_t total = record_->usage_output_tokens.value_or(0);
    // The final count comes without choices, it belongs to no chunk.
    if (!choices.empty() && total > counted_by_usage_) {
      grown = total - counted_by_usage_;
      counted_by_usage_ = total;
    }
  }
  const auto& choices = (*parsed)["choices"].items();
  if (!choices.empty()) choice(choices.front(), grown, at_s);
}

void ReplyReader::usage(const Json& counts) {
  const auto read = [](const Json& count) {
    const auto n = count.as_integer();
    return n && *n >= 0 && *n <= kMaxTokens ? n : std::nullopt;
  };
  if (const auto n = read(counts["completion_tokens"])) record_->usage_output_tokens = n;
  if (const auto n = read(counts["prompt_tokens"])) record_->usage_prompt_tokens = n;
  if (const auto n = read(counts["prompt_tokens_details"]["cached_tokens"]))
    record_->cached_prompt_tokens = n;
}

void ReplyReader::choice(const Json& choice, std::int64_t exact_tokens, double at_s) {
  const Json& delta = choice["delta"];
  const std::string_view answer = delta.is_object() ? text_of(delta["content"]) : text_of(choice["text"]);
  std::string produced(text_of(delta["reasoning_content"]));
  if (produced.empty()) produced = text_of(delta["reasoning"]);
  produced += call_text(delta["tool_calls"]);
  produced += text_of(delta["refusal"]);
  produced += answer;
  if (exact_tokens == 0) exact_tokens = static_cast<std::int64_t>(choice["token_ids"].size());
  if (produced.empty() && exact_tokens == 0) return;  // a role, or the finish reason
  RequestRecord& r = *record_;
  if (!r.first_token_s) r.first_token_s = at_s;
  if (!answer.empty() && !r.first_answer_s) r.first_answer_s = at_s;
  r.last_token_s = at_s;
  r.chunks.push_back({at_s, exact_tokens, produced.size(), exact_tokens > 0});
  r.produced += produced;
  r.text += answer;
}

}  // namespace plimsoll::bench
