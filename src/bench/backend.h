// SPDX-License-Identifier: Apache-2.0
// Which protocol does an endpoint speak: its path, the body of a request, the shape of the reply? Pure; safe
// from any thread. Source: docs/formats/load_backends.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"
#include "bench/reply_format.h"

namespace plimsoll::bench {

/// The names of all backends, as --backend takes them.
std::vector<std::string> backend_names();

std::string_view default_endpoint(Backend backend);
ReplyFormat reply_format(Backend backend);
/// What the Accept header of its requests says.
std::string_view accepted_type(Backend backend);
/// Its replies are vectors, not tokens: there is no TTFT, TPOT or ITL.
bool is_pooling(Backend backend);

/// Turns the keys of a result into those that vLLM writes of a pooling task: what is of generated tokens
/// goes, input sequences come. One request holds one sequence.
void to_pooling_keys(Json& result, const Summary& summary);

/// Errors: kUsage for an option that the backend's protocol cannot carry.
Status check_backend(const Options& options);

struct Message {
  bool is_user = true;  // else the assistant's
  std::string_view text;
};

/// The JSON body that asks for the reply to the last message, which is the user's. Backends that take no
/// messages get the texts joined.
std::string request_body(const Options& options, std::span<const Message> conversation,
                         std::int64_t max_output_tokens);

}  // namespace plimsoll::bench
