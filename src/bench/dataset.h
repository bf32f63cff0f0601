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
  std::string text;                // of this turn alone
  std::int64_t prompt_tokens = 0;  // by the tokenizer; without one, words (random) or bytes / 4
  std::int64_t max_output_tokens = 0;
  std::optional<double> at_s;  // a trace's own time; else the arrivals say when
  std::int64_t follows = -1;   // index of the turn before it in its session
  double delay_s = 0;          // after that turn's reply ended
};

/// What options.dataset says: `count` prompts, of which the last options.num_warmups are warm-ups with words
/// of their own; a trace of which no number was asked gives all its rows and the warm-ups. Custom and
/// ShareGPT files with fewer rows are used again from their start. A turn stands behind the one it follows.
/// Errors: kUsage (no path, lengths that cannot be, flags of another data set, a trace with fewer rows),
/// kMalformed with the line or pointer of what cannot be read.
Result<std::vector<Prompt>> load_prompts(const Options& options, std::int64_t count);

/// `count` different prompts of random words, in sessions when options.num_turns says so. With a tokenizer
/// each encodes to exactly its length: the first of a session with special tokens, the others without.
/// Errors: kUsage when a length is too short for the tokenizer's own special tokens, or all together are more
/// than 10^9 tokens; kUnsupported when its vocabulary holds no words that can be put together.
Result<std::vector<Prompt>> random_prompts(const Options& options, std::int64_t count);

/// `count` different prompts behind options.prefix_repetition.num_prefixes beginnings, shuffled. Errors: as
/// above.
Result<std::vector<Prompt>> prefix_repetition_prompts(const Options& options, std::int64_t count);

/// Prompts with a trace's lengths and times. Blocks of one id are the same words wherever they stand.
/// `count`: the first rows; all of them when not given.
Result<std::vector<Prompt>> trace_prompts(const Options& options, const workload::Trace& trace,
                                          std::optional<std::int64_t> count);

/// As long as the first of `measured`, single turns of words that no other prompt begins with.
Result<std::vector<Prompt>> warm_up_prompts(const Options& options, const std::vector<Prompt>& measured);

/// One JSON object per line: "prompt", and if given "output_tokens".
Result<std::vector<Prompt>> custom_prompts(const Options& options, std::string_view content);

/// An array of {"conversations": [{"value": ...}, ...]}: the first turn asks, the second tells how long the
/// answer is. Very short and very long ones are left out as vLLM does; shuffled by the seed. With
/// options.num_turns the later pairs follow as turns, up to the number drawn.
Result<std::vector<Prompt>> sharegpt_prompts(const Options& options, std::string_view content);

}  // namespace plimsoll::bench
