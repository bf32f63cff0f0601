// SPDX-License-Identifier: Apache-2.0
// What does a reply hold, and when did each token come? Reads the bytes of one HTTP answer into a
// RequestRecord: events, token chunks, usage, errors. Knows no socket; times are passed in. Each reader
// belongs to one thread.
#pragma once

#include <string>
#include <string_view>

#include "bench/record.h"
#include "bench/reply_format.h"
#include "http/event_stream.h"
#include "text/text.h"

namespace plimsoll::bench {

class ReplyReader {
 public:
  ReplyReader(RequestRecord& record, ReplyFormat format)
      : record_(&record), format_(format), framing_(framing(format)) {}

  void head(int status, std::string_view content_type, double at_s);
  void body(std::string_view bytes, double at_s);
  /// The answer is over; one that did not say so itself becomes an early_close.
  void end(double at_s);
  /// The answer broke off, for a reason that the record does not yet hold.
  void fail(ErrorKind kind, std::string_view text, double at_s);

 private:
  bool feed(std::string_view bytes, double at_s);
  bool feed_lines(std::string_view bytes, double at_s);
  void event(std::string_view data, double at_s);
  void counts(const ReplyEvent& event);
  std::string_view new_text(const ReplyEvent& event);
  void chunk(const ReplyEvent& event, std::int64_t tokens, double at_s);
  void set_error(ErrorKind kind, std::string_view text);

  /// Whether SGLang's texts hold all text so far or only what is new.
  enum class TextMode { kUnknown, kCumulative, kIncremental };

  RequestRecord* record_;
  ReplyFormat format_;
  Framing framing_;
  http::EventStreamReader events_;
  std::string rest_;  // an unfinished line, or the document so far
  std::int64_t counted_ = 0;
  TextMode text_mode_ = TextMode::kUnknown;
  bool is_readable_ = false;
  bool is_done_ = false;
};

/// Fills output_tokens, count_source and chunks[].tokens from what the server said, else from the tokenizer
/// (may be null), else one per chunk.
/// Source: docs/formats/event_stream.md, "Tokens of one event".
void count_tokens(RequestRecord& record, const text::Tokenizer* tokenizer);

}  // namespace plimsoll::bench
