// SPDX-License-Identifier: Apache-2.0
// The flags that `serve`, `generate` and `eval` share: how the embedded engine is loaded. vLLM's names and
// meanings.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/verbs.h"
#include "memory/memory.h"
#include "report/report.h"
#include "serve/serve.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

struct EngineFlags {
  std::string dtype = "auto", kv_cache_dtype = "auto", quantization;
  std::string max_model_len, kv_cache_memory_bytes, num_gpu_blocks_override;
  std::string max_num_seqs, max_num_batched_tokens;
  int block_size = 16;
  int threads = 0;
  std::optional<double> memory_utilization;
  bool enable_prefix_caching = true;
  std::string prefix_cache_dir;
  std::string packed_cache_dir;
  std::string batching = "continuous";
  std::string generation_config = "auto";
  std::string chat_template;
};
void add_engine_flags(CLI::App& verb, EngineFlags& flags);
/// Those of them that size the engine's pool, steps and team.
void add_size_flags(CLI::App& verb, EngineFlags& flags);

/// The value of a flag that takes a count or size from 1 to `high`; nothing when it was not given.
/// Errors: kUsage naming the flag.
Result<std::optional<std::int64_t>> size_flag(const std::string& text, const char* flag, std::int64_t high);

/// What `--quantization` asks for. Errors: kUsage for a name that is none.
Result<std::optional<memory::WeightFormat>> quantization_flag(const std::string& text);

/// While it lives, a load with these options tells on stderr how far it is.
class LoadProgress {
 public:
  LoadProgress(const CommonFlags& common, serve::LoadOptions& load);
  ~LoadProgress();
  LoadProgress(const LoadProgress&) = delete;
  LoadProgress& operator=(const LoadProgress&) = delete;

 private:
  report::ProgressLine line_;
  serve::LoadOptions& load_;
};

/// Errors: kUsage naming the flag whose value is no size.
Result<serve::LoadOptions> load_options(const EngineFlags& flags, const std::string& model,
                                        const CommonFlags& common);

}  // namespace plimsoll::cli
