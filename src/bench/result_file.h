// SPDX-License-Identifier: Apache-2.0
// What does a saved result say? One reader for the files of `vllm bench serve` and for ours. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "bench/resample.h"

namespace plimsoll::bench {

constexpr std::size_t kNumLatencies = 4;
/// Latencies that both clients write: ttft tpot itl e2el (itl: per chunk, in both).
constexpr std::array<std::string_view, kNumLatencies> kLatencyKeys = {"ttft", "tpot", "itl", "e2el"};

/// A latency of a run, in milliseconds.
struct FileLatency {
  Clusters by_request;  // of the arrays; successful requests that have the figure
  std::array<std::optional<double>, kNumStatistics> stated;  // mean_ttft_ms, ...
};

struct ResultFile {
  std::string path;
  bool is_ours = false;  // has the object "plimsoll"
  Json document;
  std::array<FileLatency, kNumLatencies> latencies;  // in the order of kLatencyKeys
};

/// Reads a result object, with or without the arrays of --save-detailed; of several lines (--append-result)
/// the last one. A request whose "errors" entry is not empty is in no latency, nor is a 0 that stands for
/// "none". Errors: kMalformed when the text is no result, and for a sweep or search, which hold several.
Result<ResultFile> read_result(std::string_view text, const std::string& path);

}  // namespace plimsoll::bench
