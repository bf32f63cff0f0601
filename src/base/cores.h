// SPDX-License-Identifier: Apache-2.0
// How many threads compute at once on this machine without being in each other's way? Reads /proc and /sys
// once per call; what cannot be read does not limit. Any thread may call.
#pragma once

#include <optional>
#include <string>

namespace plimsoll {

/// What was found, and what it comes to.
struct Cores {
  int allowed = 1;              // CPUs this process may run on (affinity, cpusets)
  std::optional<int> fast;      // of these the performance cores' CPUs, where the machine has others too
  int physical = 1;             // cores they lie on: two hyperthreads of a core are one
  std::optional<double> quota;  // CPUs' worth of time that the control groups allow
  int usable = 1;               // the least of physical and the quota rounded up; at least 1
};

/// Sources: Cpus_allowed_list of /proc/self/status; topology/thread_siblings_list of each CPU; for hybrid
/// machines /sys/devices/cpu_core/cpus (Intel) or cpu_capacity of each CPU (Arm): those with less than half
/// of the largest capacity are left out; cpu.max (control groups version 2) or cpu.cfs_quota_us over
/// cpu.cfs_period_us (version 1) of this process's group and those above it.
/// `root` is where /proc and /sys lie; another one than "" serves tests.
Cores read_cores(const std::string& root = "");

/// In words, such as "8 CPUs allowed on 4 cores, a quota of 2.5 CPUs".
std::string describe(const Cores& cores);

}  // namespace plimsoll
