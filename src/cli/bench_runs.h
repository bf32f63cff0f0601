// SPDX-License-Identifier: Apache-2.0
// The runs that one `bench` command asks for: one, the steps of a sweep, or the probes of a search; what of
// them is printed and saved. One thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/bench.h"
#include "bench/flags.h"
#include "bench/limits.h"
#include "cli/bench_request_flags.h"
#include "cli/bench_workload_flags.h"
#include "cli/verbs.h"

namespace plimsoll::cli {

/// Flags of `bench` as they were typed, and what they were read into.
struct BenchFlags {
  CommonFlags common;
  bench::TextFlags text;
  BenchRequestFlags request;
  BenchWorkloadFlags workload;
  bench::Options options;
  double request_timeout_s = 6 * 3600;
  std::string tokenizer;

  std::string sweep;   // concurrency=1,2,4
  std::string search;  // rate=0.5..50
  double goodput_share = 0.99;
  bool has_goodput_share = false;  // it was given
  double search_tolerance = 0.05;

  bool save_result = false;
  bool save_detailed = false;
  bool append_result = false;
  std::string result_dir;
  std::string result_filename;
  std::string request_log;
  std::string html;
  std::vector<std::string> compare;  // two result files
  bool selftest = false;
  std::vector<std::string> metadata;  // KEY=VALUE
  std::vector<std::string> fail_if;
  std::vector<bench::Limit> limits;  // of fail_if
};

/// Runs what the flags ask for and prints it; returns the exit status.
int run_benchmarks(BenchFlags& flags);

}  // namespace plimsoll::cli
