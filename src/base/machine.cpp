// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/kernel_files.h"

namespace plimsoll {
namespace {

std::optional<Bytes> kib_field(std::string_view text, std::string_view key) {
  const auto rest = line_after(text, key);
  const auto kib = rest ? leading_integer(*rest) : std::nullopt;
  const auto bytes = kib ? checked_product(*kib, kKiB) : std::nullopt;
  return bytes ? std::optional(Bytes(*bytes)) : std::nullopt;
}

struct Group {
  std::optional<Bytes> limit, headroom;

  void lower_to(std::int64_t limit_bytes, std::int64_t used_bytes) {
    const Bytes left(std::max<std::int64_t>(0, limit_bytes - used_bytes));
    limit = std::min(limit.value_or(Bytes(limit_bytes)), Bytes(limit_bytes));
    headroom = std::min(headroom.value_or(left), left);
  }
};

/// Pages that the kernel can take back do not count as used, as in MemAvailable.
void read_group(Group& group, const std::string& folder, const char* limit_file, const char* usage_file) {
  constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;  // version 1 writes a number near 2^63
  const auto limit = leading_integer(read_kernel_file(folder + limit_file));
  if (!limit || *limit >= kUnlimited) return;
  const std::int64_t usage = leading_integer(read_kernel_file(folder + usage_file)).value_or(0);
  const std::string stat = read_kernel_file(folder + "/memory.stat");
  const auto reclaimable = line_after(stat, "inactive_file ");
  const std::int64_t cache = reclaimable ? leading_integer(*reclaimable).value_or(0) : 0;
  group.lower_to(*limit, std::max<std::int64_t>(0, usage - cache));
}

Group read_groups(const std::string& root) {
  Group group;
  for (const std::string& folder : group_folders(root, ""))
    read_group(group, folder, "/memory.max", "/memory.current");
  for (const std::string& folder : group_folders(root, "memory"))
    read_group(group, folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes");
  return group;
}

std::optional<Bytes> lower(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

Machine read_machine(const std::string& root) {
  Machine machine;
  const std::string memory = read_kernel_file(root + "/proc/meminfo");
  const Group group = read_groups(root);
  machine.cgroup_limit = group.limit;
  machine.memory_total = lower(kib_field(memory, "MemTotal:"), group.limit);
  machine.memory_available = lower(kib_field(memory, "MemAvailable:"), group.headroom);
  machine.cores = read_cores(root);
  const std::string cpus = read_kernel_file(root + "/proc/cpuinfo");
  if (const auto name = line_after(cpus, "model name")) {
    const std::size_t start = name->find_first_not_of(" \t:");
    if (start != std::string_view::npos) machine.cpu_model = std::string(name->substr(start));
  }
  return machine;
}

std::optional<Bytes> resident_bytes() {
  return kib_field(read_kernel_file("/proc/self/status"), "VmRSS:");
}

std::optional<Bytes> resident_bytes_with_children(std::int64_t pid, const std::string& root) {
  constexpr std::size_t kMostProcesses = 4096;
  std::vector<std::int64_t> found = {pid};
  std::optional<Bytes> sum;
  for (std::size_t i = 0; i < found.size() && i < kMostProcesses; ++i) {
    const std::string process = root + "/proc/" + std::to_string(found[i]);
    const auto own = kib_field(read_kernel_file(process + "/status"), "VmRSS:");
    if (!own) continue;  // gone meanwhile
    sum = sum.value_or(Bytes(0)) + *own;
    // A child belongs to the thread that started it.
    std::error_code no_such;
    for (const auto& thread : std::filesystem::directory_iterator(process + "/task", no_such)) {
      std::istringstream children(read_kernel_file(thread.path().string() + "/children"));
      for (std::int64_t child = 0; children >> child;) found.push_back(child);
    }
  }
  return sum;
}

}  // namespace plimsoll
