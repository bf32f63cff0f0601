// SPDX-License-Identifier: Apache-2.0
// `bench`: where the requests go and what stands in each of them beside the prompt.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

/// As typed.
struct BenchRequestFlags {
  std::string host;
  std::optional<int> port;
  std::optional<double> temperature, top_p, min_p, frequency_penalty, presence_penalty, repetition_penalty;
  std::optional<std::int64_t> top_k;
  std::string extra_body;
  bool insecure = false;
};

void add_bench_request_flags(CLI::App& verb, BenchRequestFlags& flags, bench::Options& options);
/// Errors: kUsage naming the flag.
Status apply(const BenchRequestFlags& flags, bench::Options& options);

}  // namespace plimsoll::cli
