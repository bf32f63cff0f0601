// SPDX-License-Identifier: Apache-2.0
// Which protocol does an endpoint speak: its path and the body of a request? Pure; safe from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "bench/bench.h"

namespace plimsoll::bench {

std::string_view default_endpoint(Backend backend);

struct Message {
  bool is_user = true;  // else the assistant's
  std::string_view text;
};

/// The JSON body that asks for the reply to the last message, which is the user's. Backends that take no
/// messages get the texts joined.
std::string request_body(const Options& options, std::span<const Message> conversation,
                         std::int64_t max_output_tokens);

}  // namespace plimsoll::bench
