// SPDX-License-Identifier: Apache-2.0
// What does an engine's newest release ask of driver and CUDA, and what does a machine's driver say of its
// GPUs? Parses what nvidia-smi and /proc print; reads nothing itself. Pure; any thread may call.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace plimsoll::facts {

struct EngineEnvironment {
  std::string_view engine, version;
  std::string_view cuda;        // that its released wheels are built with
  std::string_view min_driver;  // NVIDIA's driver for Linux that runs this CUDA
  int min_capability;           // 75 = 7.5
  std::string_view source;
};
std::span<const EngineEnvironment> engine_environments();

/// One GPU as the driver reports it.
struct InstalledGpu {
  std::string name;  // NVIDIA H100 80GB HBM3
  std::optional<Bytes> memory;
  std::string driver;                     // 580.65.06; may be empty
  std::optional<int> compute_capability;  // 90
};

/// Reads what `nvidia-smi --query-gpu=name,memory.total,driver_version,compute_cap --format=csv,noheader`
/// prints, one GPU a line; lines of another form are skipped, values like "[N/A]" are absent.
std::vector<InstalledGpu> parse_nvidia_smi(std::string_view output);

/// The version in /proc/driver/nvidia/version; empty when there is none.
std::string parse_driver_version(std::string_view text);

/// True when `version` is not older than `least`, number by number: 570.124.06 is newer than 570.26.
bool is_at_least(std::string_view version, std::string_view least);

}  // namespace plimsoll::facts
