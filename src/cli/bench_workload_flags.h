// SPDX-License-Identifier: Apache-2.0
// The flags of `bench` that say which load arrives: data set, lengths, sessions, traces, ramps.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "bench/bench.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

/// As they were typed; apply_workload_flags puts them into the options.
struct BenchWorkloadFlags {
  const CLI::App* verb = nullptr;
  std::string input_length, output_length, num_turns, turn_delay, ramp_shape;
  std::optional<double> ramp_start_rate, ramp_end_rate;
};

void add_workload_flags(CLI::App& verb, BenchWorkloadFlags& flags, std::string& dataset,
                        bench::Options& options);

/// Errors: kUsage naming the flag; kMalformed for a file of lengths that cannot be read.
Status apply_workload_flags(const BenchWorkloadFlags& flags, bench::Options& options);

}  // namespace plimsoll::cli
