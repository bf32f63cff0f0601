// SPDX-License-Identifier: Apache-2.0
#include "cli/llama_cpp_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>

namespace plimsoll::cli {
namespace {

constexpr int kMost = 1 << 24;
constexpr int kEveryLayer = 1 << 20;

std::vector<std::string> parts_of(const std::string& text, char between) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

Result<std::vector<double>> split_of(const std::string& text) {
  std::vector<double> shares;
  if (text.empty()) return shares;
  double sum = 0;
  for (const std::string& part : parts_of(text, ',')) {
    double share = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), share);
    if (error != std::errc{} || end != part.data() + part.size() || !std::isfinite(share) || share < 0)
      return fail(ErrorCode::kUsage, "\"" + part.substr(0, 40) + "\" is no share of a GPU", "--tensor-split",
                  "for example 3,1");
    sum += share;
    shares.push_back(share);
  }
  if (sum <= 0) shares.clear();  // as the engine: then by free memory
  return shares;
}

Result<std::vector<memory::LlamaCppOverride>> overrides_of(const std::vector<std::string>& texts) {
  std::vector<memory::LlamaCppOverride> overrides;
  for (const std::string& text : texts)
    for (const std::string& part : parts_of(text, ',')) {
      const std::size_t equals = part.find('=');
      const std::string device = equals == std::string::npos ? "" : part.substr(equals + 1);
      int gpu = -1;
      if (device.starts_with("CUDA")) {
        const auto [end, error] = std::from_chars(device.data() + 4, device.data() + device.size(), gpu);
        if (error != std::errc{} || end != device.data() + device.size()) gpu = -1;
      }
      if (equals == 0 || (device != "CPU" && gpu < 0))
        return fail(ErrorCode::kUsage, "\"" + part.substr(0, 60) + "\" moves no tensor to a device",
                    "--override-tensor", "write PATTERN=CPU or PATTERN=CUDA0, with commas between several");
      overrides.push_back({part.substr(0, equals), gpu});
    }
  return overrides;
}

}  // namespace

void add_llama_cpp_flags(CLI::App& verb, LlamaCppFlags& flags) {
  const auto count = CLI::Range(1, kMost);
  verb.add_option("--parallel", flags.sequences, "llama.cpp: sequences that share --ctx-size (1)")
      ->check(CLI::Range(1, 256));
  verb.add_flag("--kv-unified", flags.is_unified, "llama.cpp: sequences share all cells");
  verb.add_option("--batch-size", flags.batch, "llama.cpp: tokens handed over at once (2048)")->check(count);
  verb.add_option("--ubatch-size", flags.micro_batch, "llama.cpp: tokens computed at once (512)")
      ->check(count);
  verb.add_option("--cache-type-k", flags.key_type, "llama.cpp: type of keys, f16 q8_0 q4_0 ...");
  verb.add_option("--cache-type-v", flags.value_type, "llama.cpp: type of values");
  verb.add_option("--flash-attn", flags.flash, "llama.cpp: fused attention")
      ->check(CLI::IsMember({"on", "off", "auto"}));
  verb.add_flag("--swa-full", flags.keeps_windows, "llama.cpp: layers with windows keep all tokens");
  verb.add_option("--n-gpu-layers", flags.gpu_layers,
                  "llama.cpp: layers on GPUs, the output one of them (all)")
      ->check(CLI::Range(0, kEveryLayer));
  verb.add_option("--n-cpu-moe", flags.cpu_expert_layers, "llama.cpp: layers whose experts stay with the CPU")
      ->check(CLI::Range(0, kEveryLayer));
  verb.add_flag("--cpu-moe", flags.has_cpu_experts, "llama.cpp: all experts stay with the CPU");
  verb.add_option("--override-tensor", flags.overrides, "llama.cpp: PATTERN=CPU or PATTERN=CUDA0");
  verb.add_option("--tensor-split", flags.split, "llama.cpp: shares of the GPUs, 3,1");
  verb.add_option("--host-memory-bytes", flags.host_memory,
                  "llama.cpp with --gpu: the host's memory for what stays with the CPU");
  verb.add_flag("--no-kv-offload", flags.has_no_offload, "llama.cpp: the cache stays with the CPU");
  verb.add_option("--load-mode", flags.load_mode, "llama.cpp: none reads weights into memory of their own")
      ->check(CLI::IsMember({"auto", "mmap", "none", "mlock", "mmap+mlock"}));
  verb.add_flag("--no-repack", flags.has_no_repack, "llama.cpp: no second copy in an order of the CPU's");
}

Result<plan::LlamaCppSettings> llama_cpp_settings(const LlamaCppFlags& flags) {
  plan::LlamaCppSettings settings;
  memory::LlamaCppContext& context = settings.context;
  context.num_seqs = flags.sequences;
  context.is_unified = flags.is_unified;
  if (flags.batch) context.batch_tokens = *flags.batch;
  if (flags.micro_batch) context.micro_batch_tokens = *flags.micro_batch;
  context.keeps_whole_windows = flags.keeps_windows;
  context.has_flash_attention = flags.flash != "off";
  settings.key_type = flags.key_type;
  settings.value_type = flags.value_type;
  settings.offloads_cache = !flags.has_no_offload;
  memory::LlamaCppPlacement& placement = settings.placement;
  placement.gpu_layers = flags.gpu_layers.value_or(-1);
  placement.cpu_expert_layers = flags.has_cpu_experts ? kEveryLayer : flags.cpu_expert_layers.value_or(0);
  placement.is_mapped = flags.load_mode != "none" && flags.load_mode != "mlock";
  placement.is_repacked = !flags.has_no_repack;
  if (!flags.host_memory.empty()) {
    const auto bytes = parse_size(flags.host_memory);
    if (!bytes || *bytes < 1)
      return fail(ErrorCode::kUsage, "\"" + flags.host_memory.substr(0, 60) + "\" is no size",
                  "--host-memory-bytes", "for example 64GiB");
    settings.host_memory = Bytes(*bytes);
  }
  PLIMSOLL_TRY(placement.split, split_of(flags.split));
  PLIMSOLL_TRY(placement.overrides, overrides_of(flags.overrides));
  return settings;
}

}  // namespace plimsoll::cli
