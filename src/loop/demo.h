// SPDX-License-Identifier: Apache-2.0
// The whole loop on one model: inspect, plan, serve, bench, verify; what was predicted beside what was
// measured. The server is a process of its own, so that its memory can be read from outside. Blocks until
// done.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::loop {

struct DemoOptions {
  std::string model;    // GGUF file or folder
  std::string program;  // this executable, started as `program serve ...`
  std::string folder;   // where result.json, the plan and the server's log go; created
  std::vector<std::int64_t> concurrencies = {1, 2, 4, 8, 16, 32};
  std::int64_t input_tokens = 128;
  std::int64_t output_tokens = 32;
  // 32 requests of 512 tokens make a pool that the sweep fills to the last block, so that peak memory can be
  // compared.
  std::int64_t max_model_len = 512;
  int max_num_seqs = 32;
};

/// One quantity as the plan had it and as the running process showed it.
struct Comparison {
  std::string quantity;  // kv_bytes_per_token kv_tokens kv_cache_bytes weights_bytes peak_memory_bytes
  std::string label;     // KV bytes per token
  std::string unit;      // bytes tokens
  std::optional<std::int64_t> predicted;
  std::optional<std::int64_t> measured;
  std::string how;  // where the measured figure was read
};

/// One level of the sweep; what no request gave is absent.
struct Level {
  std::int64_t max_concurrency = 0, completed = 0, failed = 0;
  std::optional<double> mean_ttft_ms, mean_tpot_ms, output_throughput, total_token_throughput;
};

struct DemoResult {
  std::string model_name, architecture;
  std::string sha256;  // of a model that is one file: which bytes the figures are for; else empty
  std::optional<std::int64_t> parameters;  // absent when the files do not tell
  std::vector<Comparison> comparisons;
  std::vector<Level> sweep;
  std::string prompt, answer;
  bool log_agrees = false;      // verify: the engine's log against the plan
  std::string inspect_summary;  // the four values that decide
  std::string machine;          // CPU model, cores, memory
  double wall_s = 0;
};

/// `say` hears one line per stage. Errors: those of the stages.
Result<DemoResult> run_demo(const DemoOptions& options, const std::function<void(std::string_view)>& say);

/// The document plimsoll.demo/1.
Json to_json(const DemoResult& result);
/// One page for people.
std::string to_text(const DemoResult& result);

}  // namespace plimsoll::loop
