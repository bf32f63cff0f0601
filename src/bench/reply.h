// SPDX-License-Identifier: Apache-2.0
// What does a streamed reply hold, and when did each token come? Reads the bytes of one HTTP answer into a
// RequestRecord: events, token chunks, usage, errors. Knows no socket; times are passed in.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "bench/record.h"
#include "http/event_stream.h"
#include "text/text.h"

namespace plimsoll::bench {

class ReplyReader {
 public:
  explicit ReplyReader(RequestRecord& record) : record_(&record) {}

  void head(int status, std::string_view content_type, double at_s);
  void body(std::string_view bytes, double at_s);
  /// The answer is over; a stream that did not say [DONE] becomes an early_close.
  void end(double at_s);
  /// The answer broke off, for a reason that the record does not yet hold.
  void fail(ErrorKind kind, std::string_view text, double at_s);

 private:
  void event(std::string_view data, double at_s);
  void choice(const Json& choice, std::int64_t exact_tokens, double at_s);
  void usage(const Json& usage);
  void set_error(ErrorKind kind, std::string_view text);

  RequestRecord* record_;
  http::EventStreamReader events_;
  std::int64_t counted_by_usage_ = 0;
  bool is_stream_ = false;
  bool is_done_ = false;
};

/// Fills output_tokens, count_source and chunks[].tokens from what the server said, else from the tokenizer
/// (may be null), else one per chunk.
/// Source: docs/formats/event_stream.md, "Tokens of one event".
void count_tokens(RequestRecord& record, const text::Tokenizer* tokenizer);

}  // namespace plimsoll::bench
