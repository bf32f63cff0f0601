// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_workload_flags.h"

#include <CLI/CLI.hpp>

namespace plimsoll::cli {
namespace {

using workload::Distribution;

void add_random_flags(CLI::App& verb, BenchWorkloadFlags& flags, bench::Options& options) {
  verb.add_option("--random-input-len", options.input_tokens, "tokens of a random prompt")
      ->capture_default_str();
  verb.add_option("--random-output-len", options.output_tokens, "tokens asked of each reply")
      ->capture_default_str();
  verb.add_option("--random-range-ratio", options.range_ratio, "lengths vary by this part, 0 to below 1")
      ->capture_default_str();
  verb.add_option("--random-prefix-len", options.prefix_tokens,
                  "tokens in front of each random prompt, the same in all")
      ->capture_default_str();
  CLI::Option* input =
      verb.add_option("--input-len", flags.input_length,
                      "tokens of a random prompt: 512, uniform:128,1024, normal:MEAN,DEVIATION"
                      "[,MIN,MAX], lognormal:MEDIAN,SIGMA[,MIN,MAX], csv:FILE[:COLUMN]");
  CLI::Option* output = verb.add_option("--output-len", flags.output_length,
                                        "tokens asked of each reply, written the same way");
  input->needs(output);
  output->needs(input);
  for (const char* fixed : {"--random-input-len", "--random-output-len", "--random-range-ratio"}) {
    input->excludes(fixed);
    output->excludes(fixed);
  }
}

void add_prefix_repetition_flags(CLI::App& verb, bench::PrefixRepetition& asked) {
  verb.add_option("--prefix-repetition-prefix-len", asked.prefix_tokens,
                  "tokens that prompts begin with alike")
      ->capture_default_str();
  verb.add_option("--prefix-repetition-suffix-len", asked.suffix_tokens, "tokens of its own behind them")
      ->capture_default_str();
  verb.add_option("--prefix-repetition-num-prefixes", asked.num_prefixes, "different beginnings")
      ->capture_default_str();
  verb.add_option("--prefix-repetition-output-len", asked.output_tokens, "tokens asked of each reply")
      ->capture_default_str();
}

void add_trace_flags(CLI::App& verb, bench::Options& options) {
  verb.add_option("--trace-speed", options.trace_speed, "replay a trace so many times as fast")
      ->capture_default_str();
  verb.add_option("--timed-trace-chunk-hash-size", options.trace.block_tokens,
                  "tokens that one of a trace's hash_ids stands for (Mooncake 512, Bailian 16)");
  verb.add_option("--timed-trace-sec-multiplier", options.trace.time_unit_s,
                  "seconds in one unit of a JSONL trace's timestamps (Mooncake 0.001, Bailian 1)");
}

void add_session_flags(CLI::App& verb, BenchWorkloadFlags& flags) {
  verb.add_option("--num-turns", flags.num_turns,
                  "turns of a session, a number or a distribution as for --input-len; random and sharegpt");
  verb.add_option("--turn-delay", flags.turn_delay,
                  "seconds from a reply's end to the next turn, a number or a distribution");
  verb.add_option("--ramp-up-strategy", flags.ramp_shape, "how the request rate grows over the requests")
      ->check(CLI::IsMember({"linear", "exponential"}));
  verb.add_option("--ramp-up-start-rps", flags.ramp_start_rate, "requests per second of the first");
  verb.add_option("--ramp-up-end-rps", flags.ramp_end_rate, "requests per second of the last");
}

Status apply_ramp(const BenchWorkloadFlags& flags, bench::Options& options) {
  const auto shape = workload::ramp_shape_from(flags.ramp_shape);
  if (!shape && (flags.ramp_start_rate || flags.ramp_end_rate))
    return fail(ErrorCode::kUsage, "the rates of a ramp need its shape", "--ramp-up-strategy",
                "add --ramp-up-strategy linear or exponential");
  if (!shape) return {};
  if (!flags.ramp_start_rate || !flags.ramp_end_rate)
    return fail(ErrorCode::kUsage, "a ramp needs the rates at both its ends",
                "--ramp-up-start-rps, --ramp-up-end-rps");
  options.ramp = workload::Ramp{*shape, *flags.ramp_start_rate, *flags.ramp_end_rate};
  return {};
}

}  // namespace

void add_workload_flags(CLI::App& verb, BenchWorkloadFlags& flags, std::string& dataset,
                        bench::Options& options) {
  flags.verb = &verb;
  verb.add_option(
          "--dataset-name", dataset,
          "where the prompts come from; timed_trace and burstgpt are vLLM's names for two kinds of trace")
      ->check(CLI::IsMember(
          {"random", "custom", "sharegpt", "trace", "timed_trace", "burstgpt", "prefix_repetition"}))
      ->capture_default_str();
  verb.add_option("--dataset-path", options.dataset_path,
                  "JSONL of {\"prompt\", \"output_tokens\"}, ShareGPT JSON, or a trace of Azure, BurstGPT, "
                  "Mooncake, Bailian or Vidur");
  add_random_flags(verb, flags, options);
  verb.add_option("--custom-output-len,--sharegpt-output-len", options.dataset_output_tokens,
                  "tokens asked of each reply of a custom or sharegpt prompt");
  add_prefix_repetition_flags(verb, options.prefix_repetition);
  add_trace_flags(verb, options);
  add_session_flags(verb, flags);
}

Status apply_workload_flags(const BenchWorkloadFlags& flags, bench::Options& options) {
  constexpr Distribution::Bounds kLength{1, 1e9, true};
  constexpr Distribution::Bounds kTurns{1, 1e6, true};
  constexpr Distribution::Bounds kDelay{0, 86'400, false};
  options.has_num_prompts = flags.verb->count("--num-prompts") > 0;
  if (!flags.input_length.empty()) {
    PLIMSOLL_TRY(Distribution input, Distribution::parse(flags.input_length, kLength, "--input-len"));
    PLIMSOLL_TRY(Distribution output, Distribution::parse(flags.output_length, kLength, "--output-len"));
    options.lengths.emplace(std::move(input), std::move(output));
  }
  if (!flags.num_turns.empty()) {
    PLIMSOLL_TRY(options.num_turns, Distribution::parse(flags.num_turns, kTurns, "--num-turns"));
  }
  if (!flags.turn_delay.empty()) {
    PLIMSOLL_TRY(options.turn_delay_s, Distribution::parse(flags.turn_delay, kDelay, "--turn-delay"));
  }
  return apply_ramp(flags, options);
}

}  // namespace plimsoll::cli
