// SPDX-License-Identifier: Apache-2.0
// Which recorded starts tell what vLLM takes beside weights and cache? Those with release, share, memory, weights
// and cache known, without memory that others share, and whose cache follows from model, GPU and flags.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/recorded_starts.h"

namespace plimsoll::starts {

/// GiB throughout.
struct Record {
  std::string id, source, release;
  plan::Model planned;
  plan::Target target;
  plan::Settings settings;
  double budget = 0, overhead = 0;  // GiB
  std::optional<double> kv;         // as logged, GiB
  std::optional<double> peak;       // of activations, as logged
  bool is_whole_weights = false;    // the plan knows the weights by itself
  bool is_set_apart = false;        // not fitted on
};

/// Rows of `records` (startup_logs.jsonl), then of `measured` (vllm_measured.tsv).
std::vector<Record> read_records(const Book& book, const std::string& records, const std::string& measured);

}  // namespace plimsoll::starts
