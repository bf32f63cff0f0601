// SPDX-License-Identifier: Apache-2.0
// What does one event of a streamed reply say, in each of the formats that servers write? Pure: no times, no
// state from one event to the next. The views of a ReplyEvent live as long as the parsed event.
// Source: docs/formats/load_backends.md, docs/formats/event_stream.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_view.h"

namespace plimsoll::bench {

enum class ReplyFormat { kOpenai, kResponses, kEmbeddings, kSglang, kOllama, kTgi, kLlamaCpp };

/// How the events lie in the bytes of a body: `data:` of an event stream, one JSON object per line, or the
/// whole body.
enum class Framing { kEventStream, kLines, kDocument };
Framing framing(ReplyFormat format);
/// A 200 with this content type may hold it; an absent type always may.
bool is_content_type_of(Framing framing, std::string_view content_type);

struct ReplyEvent {
  std::string_view thinking;
  std::string_view answer;
  std::string called;  // names and arguments of tool calls, refusals
  /// Tokens of this event alone; 0: it does not say.
  std::int64_t tokens = 0;
  /// Tokens of the reply so far, this event's with them, or in all.
  std::optional<std::int64_t> output_tokens;
  /// The growth of output_tokens came with this event; a total that comes alone belongs to no chunk.
  bool is_running_count = false;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> cached_prompt_tokens;
  /// SGLang: `answer` may be all text so far. With output ids it says so itself: as many as tokens so far.
  bool may_be_cumulative = false;
  std::optional<std::int64_t> num_output_ids;
  bool is_error = false;
  bool is_last = false;  // nothing follows that counts
};

/// `event` is an object. What has another type than the format says is as if it were absent.
ReplyEvent read_event(ReplyFormat format, JsonView event);

}  // namespace plimsoll::bench
