// SPDX-License-Identifier: Apache-2.0
#include "bench/reply.h"

#include <algorithm>

namespace plimsoll::bench {
namespace {

// Enough of an error body to recognise it.
constexpr std::size_t kMaxErrorBytes = 2048;
constexpr std::size_t kMaxReplyBytes = std::size_t{64} << 20;
// Of one event, line or document.
constexpr std::size_t kMaxEventBytes = std::size_t{16} << 20;

/// Events are read one at a time: all replies of a thread share what reads them.
JsonReader& event_reader() {
  thread_local JsonReader reader;
  return reader;
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
  is_readable_ = status == 200 && is_content_type_of(framing_, content_type);
  if (status != 200) {
    set_error(ErrorKind::kHttpStatus, "");
  } else if (!is_readable_) {
    set_error(ErrorKind::kBadStream, "");
  }
}

void ReplyReader::body(std::string_view bytes, double at_s) {
  if (!record_->first_byte_s) record_->first_byte_s = at_s;
  if (!is_readable_) {
    std::string& text = record_->error_text;
    text += bytes.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, text.size()));
    return;
  }
  if (record_->error != ErrorKind::kNone) return;
  if (!feed(bytes, at_s)) set_error(ErrorKind::kBadStream, "an event is larger than 16 MiB");
}

bool ReplyReader::feed(std::string_view bytes, double at_s) {
  switch (framing_) {
    case Framing::kEventStream:
      break;
    case Framing::kLines:
      return feed_lines(bytes, at_s);
    case Framing::kDocument:
      rest_ += bytes;
      return rest_.size() <= kMaxEventBytes;
  }
  return events_.feed(bytes, [&](const http::StreamEvent& found) { event(found.data, at_s); });
}

bool ReplyReader::feed_lines(std::string_view bytes, double at_s) {
  for (std::size_t end = bytes.find('\n'); end != bytes.npos; end = bytes.find('\n')) {
    if (rest_.size() + end > kMaxEventBytes) return false;
    if (rest_.empty()) {
      event(bytes.substr(0, end), at_s);
    } else {
      rest_ += bytes.substr(0, end);
      event(rest_, at_s);
      rest_.clear();
    }
    bytes.remove_prefix(end + 1);
  }
  rest_ += bytes;
  return rest_.size() <= kMaxEventBytes;
}

void ReplyReader::end(double at_s) {
  record_->done_s = at_s;
  if (is_readable_ && framing_ == Framing::kEventStream)
    events_.finish([&](const http::StreamEvent& found) { event(found.data, at_s); });
  if (is_readable_ && framing_ != Framing::kEventStream && !rest_.empty()) event(rest_, at_s);
  if (is_readable_ && !is_done_)
    set_error(ErrorKind::kEarlyClose, framing_ == Framing::kDocument
                                          ? "the answer holds no embedding"
                                          : "the stream ended without its last event");
  if (record_->error == ErrorKind::kBadStream && record_->error_text.empty())
    record_->error_text = "the answer is not of the kind that was asked for";
}

void ReplyReader::fail(ErrorKind kind, std::string_view text, double at_s) {
  record_->done_s = at_s;
  set_error(kind, text);
}

bool has_text(const ReplyEvent& event) {
  return !event.thinking.empty() || !event.called.empty() || !event.answer.empty();
}

void ReplyReader::event(std::string_view data, double at_s) {
  if (is_done_ || record_->error != ErrorKind::kNone) return;
  if (framing_ == Framing::kEventStream && data == "[DONE]") {
    is_done_ = true;
    return;
  }
  if (framing_ == Framing::kLines && data.find_first_not_of(" \t\r") == data.npos) return;
  const auto root = event_reader().read(data, "event");
  if (!root || !root->is_object())
    return set_error(ErrorKind::kBadStream,
                     "an event is no JSON object: " + std::string(data.substr(0, 200)));
  const ReplyEvent found = read_event(format_, *root);
  if (found.is_error) return set_error(ErrorKind::kErrorEvent, data);
  counts(found);
  std::int64_t tokens = found.tokens;
  if (found.is_running_count && found.output_tokens && *found.output_tokens > counted_) {
    // A first count that comes without text after texts that had none is the reply's total, as many servers
    // send it beside the finish reason: it belongs to no chunk.
    const bool is_total = counted_ == 0 && !record_->chunks.empty() && !has_text(found);
    if (!is_total) tokens = *found.output_tokens - counted_;
    counted_ = *found.output_tokens;
  }
  chunk(found, tokens, at_s);
  is_done_ = found.is_last;
}

void ReplyReader::counts(const ReplyEvent& event) {
  if (event.output_tokens) record_->usage_output_tokens = event.output_tokens;
  if (event.prompt_tokens) record_->usage_prompt_tokens = event.prompt_tokens;
  if (event.cached_prompt_tokens) record_->cached_prompt_tokens = event.cached_prompt_tokens;
}

std::string_view ReplyReader::new_text(const ReplyEvent& event) {
  if (!event.may_be_cumulative || record_->chunks.empty()) return event.answer;
  const std::string_view before = record_->text;
  if (event.num_output_ids && event.output_tokens && *event.output_tokens > 1) {
    const bool has_all = *event.num_output_ids == *event.output_tokens;
    text_mode_ = has_all ? TextMode::kCumulative : TextMode::kIncremental;
  } else if (text_mode_ == TextMode::kUnknown && !event.answer.starts_with(before)) {
    text_mode_ = TextMode::kIncremental;
  }
  if (text_mode_ == TextMode::kIncremental) return event.answer;
  if (event.answer.starts_with(before)) return event.answer.substr(before.size());
  return {};  // the end was taken back: a stop string
}

void ReplyReader::chunk(const ReplyEvent& event, std::int64_t tokens, double at_s) {
  RequestRecord& r = *record_;
  const std::string_view answer = new_text(event);
  const std::size_t bytes = event.thinking.size() + event.called.size() + answer.size();
  if (bytes == 0 && tokens == 0) return;  // a role, or the finish reason
  if (!r.first_token_s) r.first_token_s = at_s;
  if (!answer.empty() && !r.first_answer_s) r.first_answer_s = at_s;
  r.last_token_s = at_s;
  r.chunks.push_back({at_s, tokens, bytes, tokens > 0});
  if (r.produced.size() > kMaxReplyBytes)
    return set_error(ErrorKind::kBadStream, "the reply is longer than 64 MiB");
  r.produced.append(event.thinking).append(event.called).append(answer);
  r.text += answer;
}

}  // namespace plimsoll::bench
