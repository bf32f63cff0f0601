// SPDX-License-Identifier: Apache-2.0
// What does this machine have: memory in all and free, a limit of its control group, cores, the CPU's name?
// Reads /proc and /sys once per call; what cannot be read is absent. Any thread may call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/cores.h"
#include "base/units.h"

namespace plimsoll {

struct Machine {
  std::optional<Bytes> memory_total;      // MemTotal, or the control group's limit when lower
  std::optional<Bytes> memory_available;  // MemAvailable, or what the control group leaves when lower
  std::optional<Bytes> cgroup_limit;      // lowest limit on the way to the root; absent when unlimited
  Cores cores;
  std::string cpu_model;  // "model name" of the first core; may be empty
};

/// `root` is where /proc and /sys lie; another one than "" serves tests.
Machine read_machine(const std::string& root = "");

/// Resident bytes of this process now (VmRSS); absent where the system does not say.
std::optional<Bytes> resident_bytes();

/// Resident bytes of a process and all its descendants, added up: pages that they share count for each.
/// Absent when there is no such process or the system does not say. `root` as for read_machine.
std::optional<Bytes> resident_bytes_with_children(std::int64_t pid, const std::string& root = "");

}  // namespace plimsoll
