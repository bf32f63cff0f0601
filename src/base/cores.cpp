// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "base/kernel_files.h"

namespace plimsoll {
namespace {

std::vector<int> allowed_cpus(const std::string& root) {
  const std::string status = read_kernel_file(root + "/proc/self/status");
  if (const auto list = line_after(status, "Cpus_allowed_list:")) {
    auto cpus = parse_cpu_list(*list);
    if (!cpus.empty()) return cpus;
  }
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  if (!cpus.empty()) return cpus;
  cpus.resize(std::max(1U, std::thread::hardware_concurrency()));
  std::iota(cpus.begin(), cpus.end(), 0);
  return cpus;
}

std::string cpu_file(const std::string& root, int cpu, const char* file) {
  return read_kernel_file(fmt::format("{}/sys/devices/system/cpu/cpu{}/{}", root, cpu, file));
}

/// Those of `cpus` that are on performance cores; all where the machine makes no difference.
std::vector<int> fast_cpus(const std::string& root, const std::vector<int>& cpus) {
  std::vector<int> fast;
  const auto performance = parse_cpu_list(read_kernel_file(root + "/sys/devices/cpu_core/cpus"));
  if (!performance.empty()) {
    std::ranges::copy_if(cpus, std::back_inserter(fast),
                         [&](int cpu) { return std::ranges::binary_search(performance, cpu); });
    return fast.empty() ? cpus : fast;
  }
  std::vector<std::int64_t> capacities;
  for (const int cpu : cpus)
    capacities.push_back(leading_integer(cpu_file(root, cpu, "cpu_capacity")).value_or(0));
  const std::int64_t largest = capacities.empty() ? 0 : std::ranges::max(capacities);
  for (std::size_t i = 0; i < cpus.size(); ++i)
    if (2 * capacities[i] >= largest) fast.push_back(cpus[i]);
  return fast;
}

int count_cores(const std::string& root, const std::vector<int>& cpus) {
  std::set<std::vector<int>> cores;
  for (const int cpu : cpus) {
    auto siblings = parse_cpu_list(cpu_file(root, cpu, "topology/thread_siblings_list"));
    if (siblings.empty()) siblings = {cpu};
    cores.insert(std::move(siblings));
  }
  return static_cast<int>(cores.size());
}

void lower_to(std::optional<double>& quota, std::optional<std::int64_t> time,
              std::optional<std::int64_t> period) {
  if (!time || !period || *time == 0 || *period == 0) return;
  const double cpus = static_cast<double>(*time) / static_cast<double>(*period);
  quota = std::min(quota.value_or(cpus), cpus);
}

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> quota;
  for (const std::string& folder : group_folders(root, "")) {
    // "max 100000", or time and period in microseconds.
    const std::string limit = read_kernel_file(folder + "/cpu.max");
    const auto blank = limit.find(' ');
    if (blank == std::string::npos) continue;
    lower_to(quota, leading_integer(limit), leading_integer(std::string_view(limit).substr(blank)));
  }
  for (const std::string& folder : group_folders(root, "cpu"))
    lower_to(quota, leading_integer(read_kernel_file(folder + "/cpu.cfs_quota_us")),  // -1: none
             leading_integer(read_kernel_file(folder + "/cpu.cfs_period_us")));
  return quota;
}

}  // namespace

Cores read_cores(const std::string& root) {
  Cores cores;
  const std::vector<int> allowed = allowed_cpus(root), fast = fast_cpus(root, allowed);
  cores.allowed = static_cast<int>(allowed.size());
  if (fast.size() < allowed.size()) cores.fast = static_cast<int>(fast.size());
  cores.physical = count_cores(root, fast);
  cores.quota = cpu_quota(root);
  cores.usable = cores.physical;
  if (cores.quota) cores.usable = static_cast<int>(std::min<double>(cores.usable, std::ceil(*cores.quota)));
  return cores;
}

std::string describe(const Cores& cores) {
  const auto plural = [](int count) { return count == 1 ? "" : "s"; };
  std::string text = fmt::format("{} CPU{} allowed", cores.allowed, plural(cores.allowed));
  if (cores.fast) text += fmt::format(", {} of them performance cores'", *cores.fast);
  text += fmt::format(", on {} core{}", cores.physical, plural(cores.physical));
  if (cores.quota) text += fmt::format(", a quota of {:.3g} CPUs", *cores.quota);
  return text;
}

}  // namespace plimsoll
