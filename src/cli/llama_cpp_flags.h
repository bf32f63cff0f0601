// SPDX-License-Identifier: Apache-2.0
// llama.cpp's own flags on `plan`, under its names. Strings in, settings out.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "plan/plan.h"

namespace CLI {
class App;
}

namespace plimsoll::cli {

struct LlamaCppFlags {
  std::string key_type, value_type, flash = "auto", split, load_mode = "auto", host_memory;
  std::vector<std::string> overrides;
  int sequences = 1;
  std::optional<int> batch, micro_batch, gpu_layers, cpu_expert_layers;
  bool is_unified = false, keeps_windows = false, has_cpu_experts = false;
  bool has_no_offload = false, has_no_repack = false;
};

void add_llama_cpp_flags(CLI::App& verb, LlamaCppFlags& flags);

/// Errors: kUsage for shares and patterns that cannot be read.
Result<plan::LlamaCppSettings> llama_cpp_settings(const LlamaCppFlags& flags);

}  // namespace plimsoll::cli
