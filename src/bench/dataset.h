// SPDX-License-Identifier: Apache-2.0
// Which prompts does the load consist of? Made from a seed, or read from a file; the same options give the
// same prompts. Reads files, opens no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"
#include "text/text.h"

namespace plimsoll::bench {

struct Prompt {
  std::string text;
  std::int64_t prompt_tokens = 0;  // by the tokenizer; without one, words (random) or bytes / 4
  std::int64_t max_output_tokens = 0;
  std::optional<double> at_s;  // a trace's own time; else the arrivals say when
  std::int64_t follows = -1;   // index of the turn before it in its session
  double delay_s = 0;          // after that turn's reply ended
};

/// `count` prompts as options.dataset says. Files with fewer rows are used again from their start.
/// Errors: kUsage (no path, impossible lengths), kMalformed with the line or pointer of what cannot be read.
Result<std::vector<Prompt>> load_prompts(const Options& options, std::int64_t count);

/// `count` different prompts of random words. With a tokenizer each encodes, special tokens included, to
/// exactly its length.
/// Errors: kUsage when a length is too short for the tokenizer's own special tokens, kUnsupported when its
/// vocabulary holds no words that can be put together.
Result<std::vector<Prompt>> random_prompts(const Options& options, std::int64_t count);

/// One JSON object per line: "prompt", and if given "output_tokens".
Result<std::vector<Prompt>> custom_prompts(const Options& options, std::string_view content);

/// An array of {"conversations": [{"value": ...}, ...]}: the first turn asks, the second tells how long the
/// answer is. Very short and very long ones are left out as vLLM does; shuffled by the seed.
Result<std::vector<Prompt>> sharegpt_prompts(const Options& options, std::string_view content);

}  // namespace plimsoll::bench
