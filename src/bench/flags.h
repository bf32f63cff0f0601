// SPDX-License-Identifier: Apache-2.0
// From the words of `vllm bench serve`'s flags to Options. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"

namespace plimsoll::bench {

/// Flags whose value is a small language of its own, as they were typed.
struct TextFlags {
  std::string backend = "openai";
  std::string dataset = "random";
  std::string request_rate = "inf";
  std::string burstiness = "1.0";
  std::string metrics = "ttft,tpot,itl";
  std::string percentiles = "99";
  std::vector<std::string> goodput;  // ttft:500
  std::vector<std::string> headers;  // NAME=VALUE or "NAME: VALUE"
};

/// Errors: kUsage naming the flag; the value of a header is never in the message.
Status apply(const TextFlags& flags, Options& options);

/// Headers of NAME=VALUE or "NAME: VALUE". Errors: kUsage; a value is never in the message.
Result<http::Headers> parse_headers(const std::vector<std::string>& words);
/// OPENAI_API_KEY as a bearer token, unless there is a header for it already.
void add_key_from_environment(http::Headers& headers);

}  // namespace plimsoll::bench
