// SPDX-License-Identifier: Apache-2.0
// What happened to one request: plain values, filled by the run and read by the statistics. All times are
// seconds from the start of the run; those of an answer are when the kernel received it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::bench {

enum class ErrorKind { kNone, kHttpStatus, kConnect, kTimeout, kEarlyClose, kBadStream, kErrorEvent };
/// none http_status connect timeout early_close bad_stream error_event
std::string_view to_string(ErrorKind kind);

enum class CountSource { kUsage, kTokenizer, kChunks };
/// usage tokenizer chunks
std::string_view to_string(CountSource source);

/// One event that carried text.
struct Chunk {
  double at_s = 0;
  std::int64_t tokens = 0;        // 0: a piece of a token that an earlier chunk counts
  std::size_t text_bytes = 0;     // of RequestRecord::produced
  bool has_exact_tokens = false;  // the server said how many
};

struct RequestRecord {
  std::int64_t index = 0;
  std::string prompt;
  std::int64_t prompt_tokens = 0;  // the server's count when it gave one
  std::int64_t max_output_tokens = 0;

  double scheduled_s = 0;             // when it was to leave
  double eligible_s = 0;              // scheduled, or when the concurrency limit let it
  std::int64_t follows = -1;          // index of the turn before it in its session
  std::size_t target = 0;             // which endpoint
  double sent_s = 0;                  // given to the client, which may have to connect first
  std::optional<double> connected_s;  // its bytes go to the kernel
  std::optional<double> headers_s;
  std::optional<double> first_byte_s;    // of the body
  std::optional<double> first_token_s;   // any channel; the role chunk is no token
  std::optional<double> first_answer_s;  // first content token
  std::optional<double> last_token_s;
  double done_s = 0;

  std::vector<Chunk> chunks;
  std::string produced;  // all generated text in order: reasoning, calls and answer
  std::string text;      // the answer alone
  std::int64_t output_tokens = 0;
  CountSource count_source = CountSource::kChunks;
  std::optional<std::int64_t> usage_prompt_tokens;
  std::optional<std::int64_t> usage_output_tokens;
  std::optional<std::int64_t> cached_prompt_tokens;

  bool was_sent_again = false;  // the kept connection it went to first was closed
  bool is_unfinished = false;   // the run was interrupted before it was over
  int status = 0;               // HTTP; 0 when there was no answer
  ErrorKind error = ErrorKind::kNone;
  std::string error_text;

  bool is_success() const { return error == ErrorKind::kNone; }
};

}  // namespace plimsoll::bench
